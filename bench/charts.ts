/** Charts and the console: what a picture costs, what the page weighs, and how it stands a long journal. */
import { rmSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { chartModel, layoutChart, toAscii, toMermaid, toScxml, toSvg } from "../src/charts/mod.ts";
import { page } from "../src/console/page.generated.ts";
import type { JournalRecord } from "../src/journal/mod.ts";
import { RunHistory } from "../src/console/model/run.ts";
import { clusterKernel, machines } from "../src/machines/mod.ts";
import { launch, noBrowser, open, serveJournal } from "../test/browser/browser.ts";
import { longRun, type RecordedRun } from "../test/console/fixture.ts";
import type { BenchTable } from "./run.ts";

export const name = "charts";

const RECORDS = 100_000;

export async function run(): Promise<BenchTable[]> {
  const journal = longRun(RECORDS);
  return [await pictures(), weight(), folding(journal), await browsing(journal)];
}

const since = (began: number): number => performance.now() - began;

/** Milliseconds of one call, the median of a few. */
async function timed(work: () => unknown): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i < 5; i++) {
    const began = performance.now();
    await work();
    all.push(since(began));
  }
  return all.sort((a, b) => a - b)[2]!;
}

async function pictures(): Promise<BenchTable> {
  await layoutChart(chartModel(machines["engine"]!)); // loads elkjs
  const rows: (string | number)[][] = [];
  for (const [id, machine] of Object.entries(machines)) {
    const model = chartModel(machine);
    const layout = await layoutChart(model);
    rows.push([
      id,
      await timed(() => chartModel(machine)),
      await timed(() => layoutChart(model)),
      await timed(() => toSvg(model, layout)),
      await timed(() => toMermaid(model)),
      await timed(() => toScxml(model)),
      await timed(() => toAscii(model)),
      toSvg(model, layout).length,
    ]);
  }
  return {
    title: "A chart of each machine (milliseconds, median of 5)",
    columns: ["machine", "read", "layout", "SVG", "Mermaid", "SCXML", "terminal", "SVG bytes"],
    rows,
    notes: ["Layout is elkjs, loaded before; pages receive its coordinates and draw only."],
  };
}

function weight(): BenchTable {
  const rows = Object.entries(page).map(([part, text]): (string | number)[] => [
    part,
    text.length,
    gzipSync(text, { level: 9 }).length,
  ]);
  const sum = (i: number): number => rows.reduce((total, row) => total + Number(row[i]), 0);
  return {
    title: "The page's weight (bytes)",
    columns: ["part", "plain", "compressed"],
    rows: [...rows, ["all", sum(1), sum(2)]],
    notes: ["Limit: 250,000 compressed. Kernel, charts, views and journal reader are in it."],
  };
}

function folding(journal: RecordedRun): BenchTable {
  const rows: (string | number)[][] = [];
  let began = performance.now();
  const records = journal.lines.map((line) => JSON.parse(line) as JournalRecord);
  rows.push(["parse", since(began), RECORDS / since(began) * 1000]);
  began = performance.now();
  const history = new RunHistory(clusterKernel());
  history.append(records);
  rows.push(["fold, with digests compared", since(began), RECORDS / since(began) * 1000]);
  began = performance.now();
  for (let i = 0; i < 200; i++) history.at((i * 7919) % RECORDS);
  rows.push(["200 jumps to any moment", since(began), 200 / since(began) * 1000]);
  return {
    title: `A journal of ${RECORDS.toLocaleString("en")} records, without a browser`,
    columns: ["what", "ms", "per second"],
    rows,
  };
}

async function browsing(journal: RecordedRun): Promise<BenchTable> {
  const title = `The page with ${RECORDS.toLocaleString("en")} records, in Chromium`;
  const columns = ["what", "value", "unit"];
  if (noBrowser) return { title, columns, rows: [], notes: [`left out: ${noBrowser}`] };
  const { server, directory } = await serveJournal(journal.text());
  const browser = await launch();
  try {
    const rows: (string | number)[][] = [];
    const began = performance.now();
    const { page, close } = await open(browser, `${server.url}?view=journal`);
    await page.locator(".banner h2").waitFor();
    rows.push(["navigation to the sentence on the screen", since(began), "ms"]);
    await page.getByRole("button", { name: "Charts" }).click();
    await page.locator("main[aria-label=Charts]").waitFor();
    rows.push(["navigation to an answered click", since(began), "ms"]);
    await page.getByRole("button", { name: "Journal" }).click();
    await page.getByText("100,000 records of 100,000").waitFor({ timeout: 60_000 });
    rows.push(["navigation to every record folded", since(began), "ms"]);
    const idle = await page.evaluate(dragSlider, false);
    rows.push(["nothing done, for comparison", idle.frames, "frames a second"]);
    for (const view of ["cluster", "charts", "journal", "sequence"]) {
      await page.locator("nav button").nth(
        ["cluster", "charts", "journal", "sequence"].indexOf(view),
      )
        .click();
      const { frames, worst } = await page.evaluate(dragSlider, true);
      rows.push([`slider dragged, ${view}`, frames, "frames a second"]);
      rows.push([`slider dragged, ${view}: longest frame`, worst, "ms"]);
    }
    await close();
    return {
      title,
      columns,
      rows,
      notes: [
        "Headless, without a GPU; a drag sets another moment in every frame for two seconds.",
      ],
    };
  } finally {
    await browser.close();
    await server.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Runs in the page: moves the slider in every frame (or does nothing) and counts the frames. */
async function dragSlider(moving: boolean): Promise<{ frames: number; worst: number }> {
  // deno-lint-ignore no-explicit-any
  const { document, requestAnimationFrame, Event } = globalThis as any;
  const slider = document.querySelector("input[type=range]");
  // No named functions in here: the compiler would mark them with a helper that the page does not have.
  const began = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
  let frames = 0;
  let worst = 0;
  let before = began;
  while (before - began < 2000) {
    slider.value = String((frames * 397) % 100_000);
    if (moving) slider.dispatchEvent(new Event("input", { bubbles: true }));
    const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
    worst = Math.max(worst, now - before);
    before = now;
    frames++;
  }
  return { frames: frames / ((before - began) / 1000), worst };
}
