import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { check } from "../../src/checker/mod.ts";
import { emptySource, modelExplorer, startConsole } from "../../src/console/mod.ts";
import { upstreamDefects } from "../../models/upstream/mod.ts";
import { failedRun, formedRun, formingRun, longRun } from "../console/fixture.ts";
import {
  launch,
  noBrowser,
  open,
  picture,
  serveDirectory,
  serveJournal,
  type Watched,
} from "./browser.ts";

const skip = noBrowser;
let browser: Browser;
before(async () => {
  if (!skip) browser = await launch();
});
after(async () => await browser?.close());

const title = (page: Page) => page.locator(".banner h2");
const records = (page: Page) => page.locator(".where b");

/** Opens a page on a journal, runs the body, and checks that nothing foreign was asked and nothing went wrong. */
async function onJournal(
  text: string,
  path: string,
  body: (page: Page, more: { file: string; directory: string; watched: Watched }) => Promise<void>,
  options: Parameters<typeof open>[2] = {},
): Promise<void> {
  const { server, file, directory } = await serveJournal(text);
  const watched = await open(browser, server.url + path, options);
  try {
    await body(watched.page, { file, directory, watched });
    assert.deepEqual(watched.foreign, [], "no request leaves the machine");
    assert.deepEqual(watched.errors, [], "nothing went wrong in the page");
  } finally {
    await watched.close();
    await server.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

test("what is wrong is said in the first screen, in words, with what to do", { skip }, async () => {
  await onJournal(failedRun().text(), "", async (page) => {
    await title(page).waitFor();
    assert.equal(await title(page).innerText(), "Failed");
    const banner = page.locator(".banner");
    assert.match(await banner.innerText(), /Rank 4 .* was killed by SIGKILL while loading/);
    assert.match(await banner.innerText(), /What to do: Find out who killed it/);
    const box = (await banner.boundingBox())!;
    assert.ok(box.y + box.height < 860, "visible without scrolling");
    assert.match(await page.locator(".failure").innerText(), /CUDA out of memory/);
    assert.match(await page.locator("tbody tr").first().innerText(), /rank 4\s+lost/);
  });
});

test(
  "a live run: new records arrive by themselves, and the sentence changes",
  { skip },
  async () => {
    const run = formingRun();
    await onJournal(run.text(), "", async (page, { file }) => {
      await page.getByText("4 of 6 ranks are ready").waitFor();
      const at = run.lines.length;
      run.hello(5).ready(4).ready(5);
      appendFileSync(file, run.lines.slice(at).join(""));
      await page.getByText("All 6 ranks are ready").waitFor();
      assert.equal(await records(page).innerText(), "23");
      assert.equal(await page.locator(".connection").innerText(), "live");
    });
  },
);

test(
  "a server that restarts: the page says so, comes back by itself and misses nothing",
  { skip },
  async () => {
    const run = formingRun();
    const { server, file, directory } = await serveJournal(run.text());
    const watched = await open(browser, server.url);
    const { page } = watched;
    await page.getByText("4 of 6 ranks are ready").waitFor();
    await server.close();
    await page.getByText("connection lost, trying again").waitFor();
    const at = run.lines.length;
    run.hello(5).ready(4).ready(5);
    appendFileSync(file, run.lines.slice(at).join(""));
    const again = await serveDirectory(directory, { port: Number(new URL(server.url).port) });
    try {
      await page.getByText("All 6 ranks are ready").waitFor({ timeout: 15_000 });
      assert.equal(await page.locator(".connection").innerText(), "live");
      assert.equal(await records(page).innerText(), "23");
      assert.deepEqual(watched.foreign, []);
    } finally {
      await watched.close();
      await again.close();
      rmSync(directory, { recursive: true, force: true });
    }
  },
);

test(
  "time travel: slider, keys and address show the same moment on the whole page",
  { skip },
  async () => {
    await onJournal(failedRun().text(), "?seq=12", async (page) => {
      await title(page).waitFor();
      assert.match(await title(page).innerText(), /^Forming\s*at record 12$/);
      await page.keyboard.press("ArrowRight");
      assert.match(page.url(), /[?&]seq=13/);
      await page.keyboard.press("Shift+ArrowLeft");
      assert.match(page.url(), /seq=3\b/);
      await page.keyboard.press("n");
      await page.getByRole("heading", { name: "Failed" }).waitFor();
      assert.doesNotMatch(page.url(), /seq=/, "the newest moment needs no place in the address");
      await page.keyboard.press("Home");
      await page.getByText("Nothing is recorded yet.").waitFor();
      const slider = page.getByRole("slider", { name: "Moment of the run" });
      await slider.focus();
      await page.keyboard.press("End");
      await page.getByRole("heading", { name: "Failed" }).waitFor();
      await slider.fill("20");
      await page.getByText("4 of 6 ranks are ready").waitFor();
      assert.match(
        (await slider.getAttribute("aria-valuetext"))!,
        /^record 20 of 21, \d\d:30:12\.400$/,
      );
      await page.keyboard.press("3");
      await page.getByText("Record 20: ready to rank/3/engine").waitFor();
      await page.reload();
      await page.getByText("Record 20: ready to rank/3/engine").waitFor();
    });
  },
);

test(
  "charts: the active state, the last transition and counts of the moment shown",
  { skip },
  async () => {
    await onJournal(failedRun().text(), "?view=charts&of=rank/4/engine&seq=20", async (page) => {
      // The drawing is there before the moment is laid over it.
      const connected = page.locator('[data-state="engine.connected"].active');
      await connected.waitFor();
      assert.match(await connected.innerHTML(), /×5/);
      await page.keyboard.press("ArrowRight");
      await page.locator('[data-state="engine.lost"].active').waitFor();
      assert.equal(await page.locator("path.edge.last").count(), 1);
      assert.match(await page.locator("main").innerText(), /Last transition: exited/);
    });
  },
);

test("the sequence around a moment: a click goes to that record", { skip }, async () => {
  await onJournal(failedRun().text(), "?view=sequence&seq=17", async (page) => {
    await page.locator('.step[data-seq="11"]').first().waitFor();
    assert.ok(await page.locator(".step.now").count() > 0);
    await page.locator('[data-seq="13"] text.label').first().click();
    assert.match(page.url(), /seq=13/);
  });
});

test("a journal of 100,000 records: few rows exist, jumps and scrolling show the right ones", {
  skip,
}, async () => {
  const run = longRun(100_000);
  await onJournal(run.text(), "?view=journal", async (page) => {
    await page.getByText("100,000 records of 100,000").waitFor({ timeout: 60_000 });
    assert.ok(await page.locator(".body .row").count() < 80);
    await page.getByRole("slider", { name: "Moment of the run" }).fill("50000");
    await page.getByText(/^Record 50000:/).waitFor();
    assert.equal(await page.locator(".row.selected [role=cell]").first().innerText(), "50000");
    const table = page.getByRole("table", { name: "Records" });
    await table.evaluate((el) => el.scrollTop = el.scrollHeight);
    await page.locator(".row [role=cell]", { hasText: /^100000$/ }).waitFor();
    assert.ok(await page.locator(".body .row").count() < 80);
    await page.keyboard.press("/");
    await page.locator("#filter:focus").waitFor();
    await page.keyboard.type("mystery rank/0");
    const hits = run.lines.filter((l) => l.includes("mystery")).length;
    await page.getByText(`${hits} records of 100,000`).waitFor();
  });
});

test("the journal by keyboard alone: search, rows, help", { skip }, async () => {
  await onJournal(failedRun().text(), "", async (page) => {
    await title(page).waitFor();
    await page.keyboard.press("/");
    await page.locator("#filter:focus").waitFor();
    await page.keyboard.type("spawned");
    await page.getByText("6 records of 21").waitFor();
    await page.keyboard.press("Tab"); // leaves the field
    await page.getByRole("table", { name: "Records" }).focus();
    await page.keyboard.press("ArrowUp");
    await page.getByText(/^Record (9|10): spawned/).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
  });
});

test(
  "a journal dropped onto an empty page is shown; a second one is compared",
  { skip },
  async () => {
    const server = await startConsole({ source: emptySource });
    const watched = await open(browser, server.url);
    const { page } = watched;
    try {
      await page.getByText("There is no run here yet.").waitFor();
      const first = failedRun().text();
      await page.evaluate((text) => {
        const data = new DataTransfer();
        data.items.add(new File([text], "000001-000000000001.jsonl"));
        dispatchEvent(
          new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }),
        );
      }, first);
      await page.getByRole("heading", { name: "Failed" }).waitFor();
      assert.equal(await page.locator(".connection").innerText(), "from a file");
      await page.getByRole("button", { name: "Compare" }).click();
      await page.locator("main input[type=file]").setInputFiles({
        name: "other.jsonl",
        mimeType: "application/json",
        buffer: Buffer.from(formedRun(6).text()),
      });
      await page.getByText(/^Record 16: strangers to startup in the first run, hello to/).waitFor();
      await page.getByRole("button", { name: "Go to record 16 in this run" }).click();
      assert.match(page.url(), /seq=16/);
      await page.locator("main input[type=file]").count();
      await page.evaluate(() => {
        const data = new DataTransfer();
        data.items.add(new File(["nonsense"], "notes.txt"));
        dispatchEvent(
          new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }),
        );
      });
      await page.getByText(/This cannot be shown: no journal among notes\.txt/).waitFor();
      assert.deepEqual([watched.foreign, watched.errors], [[], []]);
    } finally {
      await watched.close();
      await server.close();
    }
  },
);

test(
  "a model under exploration: step, back, and the counterexample at one click",
  { skip },
  async () => {
    const labels = ["prepare", "vote yes", "crash of rank 1"];
    const server = await startConsole({
      source: emptySource,
      explorer: {
        name: "two-phase commit",
        summary: "288 states, 1 property fails",
        traces: [{ property: "agreement", text: "ranks disagree", path: [0, 2, 1] }],
        at: (path) => ({
          path,
          steps: path.map((n, i) => ({
            kind: "message",
            seq: i + 1,
            from: "coordinator",
            to: `rank ${n}`,
            label: labels[n]!,
          })),
          parties: [{ id: "coordinator", state: path.length > 2 ? "committed" : "waiting" }],
          enabled: path.length < 3
            ? labels.map((label) => ({
              label,
              ...(label.startsWith("crash") ? { kind: "crash" } : {}),
            }))
            : [],
          violated: path.length === 3 ? ["agreement"] : [],
          terminal: path.length === 3,
        }),
      },
    });
    const watched = await open(browser, server.url);
    const { page } = watched;
    try {
      await page.getByRole("heading", { name: /two-phase commit/ }).waitFor();
      await page.getByRole("button", { name: "vote yes" }).click();
      await page.getByText("step 1").waitFor();
      assert.match(page.url(), /path=1/);
      await page.keyboard.press("3");
      await page.getByText("step 2").waitFor();
      await page.getByRole("button", { name: "Back" }).click();
      await page.getByText("step 1").waitFor();
      await page.getByRole("button", { name: "agreement" }).click();
      await page.getByText("Does not hold here: agreement").waitFor();
      assert.equal(await page.locator("g.step").count(), 3);
      await picture(page, "explore-light");
      assert.deepEqual([watched.foreign, watched.errors], [[], []]);
    } finally {
      await watched.close();
      await server.close();
    }
  },
);

test(
  "a real model with its counterexample, as muster check --explore shows it",
  { skip },
  async () => {
    const { model, property } = upstreamDefects.find((d) => d.name === "agreement")!;
    const explorer = modelExplorer(model, check(model));
    const server = await startConsole({ source: emptySource, explorer });
    const watched = await open(browser, server.url, { colorScheme: "dark" });
    const { page } = watched;
    try {
      await page.getByRole("button", { name: property, exact: true }).first().click();
      await page.getByText(`Does not hold here: ${property}`).waitFor();
      await picture(page, "explore-dark");
      assert.deepEqual(await violations(page), []);
      await page.keyboard.press("Backspace");
      const steps = explorer.traces[0]!.path.length - 1;
      await page.getByText(`step ${steps}`).waitFor();
      assert.deepEqual([watched.foreign, watched.errors], [[], []]);
    } finally {
      await watched.close();
      await server.close();
    }
  },
);

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Violations that axe-core finds, in one line each. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(axe, "utf8"));
  return await page.evaluate(async () => {
    // deno-lint-ignore no-explicit-any
    const { violations } = await (globalThis as any).axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    });
    return violations.flatMap((
      v: { id: string; nodes: { html: string; failureSummary: string }[] },
    ) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 120)} ${n.failureSummary.slice(0, 200)}`));
  });
}

for (const scheme of ["light", "dark"] as const) {
  for (const view of ["cluster", "charts", "journal", "sequence", "next", "compare"]) {
    test(`axe-core finds nothing in ${view}, ${scheme}; a picture is taken`, { skip }, async () => {
      await onJournal(failedRun().text(), `?view=${view}&of=rank/4/engine`, async (page) => {
        await title(page).waitFor();
        if (view === "charts") await page.locator("svg.muster-chart").waitFor();
        await picture(page, `${view}-${scheme}`);
        assert.deepEqual(await violations(page), []);
      }, { colorScheme: scheme });
    });
  }
}

test("at the width of a phone nothing is wider than the screen, and every panel has content", {
  skip,
}, async () => {
  for (const view of ["cluster", "charts", "journal", "sequence", "next"]) {
    await onJournal(failedRun().text(), `?view=${view}`, async (page) => {
      await title(page).waitFor();
      if (view === "charts") await page.locator("svg.muster-chart").waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 390, `${view} is ${wide} wide`);
      assert.ok((await page.locator("main").innerText()).length > 40);
      await picture(page, `${view}-phone`);
    }, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  }
});

test("text in charts stays inside its state, in the browser's own measure", { skip }, async () => {
  await onJournal(formedRun(2).text(), "?view=charts&of=startup", async (page) => {
    await page.locator("svg.muster-chart").waitFor();
    const spilt = await page.evaluate(() =>
      [...document.querySelectorAll<SVGGElement>("g.state")].flatMap((g) => {
        const box = g.querySelector<SVGRectElement>("rect.box")!.getBBox();
        return [...g.querySelectorAll<SVGTextElement>("text:not(.count)")]
          .filter((t) => t.getBBox().x + t.getBBox().width > box.x + box.width + 0.5)
          .map((t) => t.textContent);
      })
    );
    assert.deepEqual(spilt, []);
  });
});

test("with reduced motion nothing moves", { skip }, async () => {
  await onJournal(failedRun().text(), "?view=charts&of=rank/4/engine", async (page) => {
    // A straight edge has no width: to the browser it is there, but not visible.
    await page.locator("path.edge.last").waitFor({ state: "attached" });
    const name = await page.locator("path.edge.last").evaluate((el) =>
      getComputedStyle(el).animationName
    );
    assert.equal(name, "none");
  }, { reducedMotion: "reduce" });
});
