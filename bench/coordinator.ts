/** The DP coordinator under a flood of statistics, and utility calls over the engine bus. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bindEngineBus } from "../src/drivers/zmq/engine-bus.ts";
import { connectXSubscriber, makeContext } from "../src/drivers/zmq/sockets.ts";
import { FrontEndClient } from "../src/drivers/front-end.ts";
import { ServingEngine } from "../src/drivers/engine-serving.ts";
import { DpCoordinator } from "../src/host/mod.ts";
import { SUBSCRIBE_ALL, utilities, type WireRank } from "../src/protocol/mod.ts";
import type { BenchTable } from "./run.ts";

export const name = "coordinator";

const PYTHON = ".venv/bin/python";
const script = (file: string) => fileURLToPath(new URL(`peers/${file}`, import.meta.url));

export async function run(): Promise<BenchTable[]> {
  return [await statistics(), await calls()];
}

async function statistics(): Promise<BenchTable> {
  const title = "Statistics that one coordinator absorbs, sent by pyzmq as fast as it can";
  const columns = [
    "engines",
    "messages/s",
    "bare loop, messages/s",
    "ours / bare",
    "publish gap p50, ms",
    "p95, ms",
  ];
  if (!existsSync(PYTHON)) {
    return {
      title,
      columns,
      rows: [],
      notes: [`${PYTHON} is missing: bash test/interop/setup.sh`],
    };
  }
  const rows: (string | number)[][] = [];
  for (const engines of [1, 16, 256, 1024]) {
    const messages = 200_000;
    const ours = await absorb(engines, messages);
    const bare = await bareLoop(engines, messages);
    rows.push([engines, ours.rate, bare, ours.rate / bare, ours.gap50, ours.gap95]);
  }
  return {
    title,
    columns,
    rows,
    notes: [
      "The bare loop is pyzmq and msgspec: it decodes and stores, and does nothing else.",
      "The interval of publishing is 100 ms; gaps are measured by a front-end during the flood.",
    ],
  };
}

async function absorb(
  engines: number,
  messages: number,
): Promise<{ rate: number; gap50: number; gap95: number }> {
  const coordinator = await DpCoordinator.start({
    sockets: {
      frontPublish: "tcp://127.0.0.1:0",
      backPublish: "tcp://127.0.0.1:0",
      backOutput: "tcp://127.0.0.1:0",
    },
    engines: 1,
    coordinates: true,
  });
  const { sockets } = coordinator.state();
  const engine = connectXSubscriber({ address: sockets.backPublish });
  await engine.send([SUBSCRIBE_ALL]);
  const front = await FrontEndClient.connect({ address: sockets.frontPublish, engines });
  await front.scaled(engines);
  const blast = spawn(PYTHON, [
    script("stats_blast.py"),
    sockets.backOutput,
    String(engines),
    String(messages),
  ], { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise<void>((resolve) => blast.stdout.once("data", () => resolve()));
  const gaps: number[] = [];
  let last = performance.now();
  let done = false;
  const following = (async () => {
    while (!done) {
      await front.nextPublish();
      gaps.push(performance.now() - last);
      last = performance.now();
    }
  })();
  const began = performance.now();
  blast.stdin.write("\n");
  while ((coordinator.loads?.recorded ?? 0) + (coordinator.loads?.dropped ?? 0) < messages) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const seconds = (performance.now() - began) / 1000;
  done = true;
  blast.stdin.end("\n");
  await following;
  front.close();
  engine.close();
  await coordinator.close();
  gaps.sort((a, b) => a - b);
  const at = (q: number) => gaps[Math.min(gaps.length - 1, Math.floor(q * gaps.length))] ?? 0;
  return { rate: messages / seconds, gap50: at(0.5), gap95: at(0.95) };
}

async function bareLoop(engines: number, messages: number): Promise<number> {
  const loop = spawn(PYTHON, [script("stats_loop.py"), String(engines), String(messages)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  const line = (n: number) =>
    new Promise<string>((resolve) => {
      const look = () => {
        const lines = text.split("\n");
        if (lines.length > n) resolve(lines[n - 1]!);
      };
      loop.stdout.on("data", look);
      look();
    });
  loop.stdout.on("data", (chunk) => text += chunk);
  const address = await line(1);
  const blast = spawn(PYTHON, [
    script("stats_blast.py"),
    address,
    String(engines),
    String(messages),
  ], { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise<void>((resolve) => blast.stdout.once("data", () => resolve()));
  blast.stdin.write("\n");
  const seconds = Number(await line(2));
  blast.stdin.end("\n");
  return messages / seconds;
}

async function calls(): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), "muster-bench-"));
  const at = (file: string) => `ipc://${folder}/${file}`;
  const ranks = 64;
  const context = makeContext(8 * ranks);
  const there = new Set<number>();
  const bus = await bindEngineBus({
    input: at("in"),
    output: at("out"),
    clientIndex: 0,
    expects: (rank) => rank < ranks,
    onFirstFrame: (rank) => void there.add(rank),
    onNotification: () => {},
    onEngineDead: () => {},
    onMalformed: () => {},
    onStrangers: () => {},
    context,
  });
  const engines = Array.from({ length: ranks }, (_, rank) =>
    new ServingEngine({
      rank: rank as WireRank,
      size: 1,
      addresses: {
        inputs: [at("in")],
        outputs: [at("out")],
        coordinatorInput: null,
        coordinatorOutput: null,
        frontendStatsPublish: null,
      },
      group: null,
      behaviour: {
        coordinated: false,
        capacity: 1,
        agreeEvery: 32,
        saysWhenItRuns: true,
        blocks: 1,
      },
      facts: null,
      stepMs: 1,
      tokens: 1,
      context,
      exit: () => {},
    }));
  await Promise.all(engines.map((e) => e.join()));
  while (there.size < ranks) await new Promise((resolve) => setTimeout(resolve, 5));
  let id = 0;
  const ask = (rank: number) =>
    bus.call({
      rank: rank as WireRank,
      callId: String(++id),
      utility: utilities.isSchedulerPaused(),
      deadlineMs: 10_000,
    });
  const measure = async (times: number, act: () => Promise<unknown>) => {
    for (let i = 0; i < 50; i++) await act();
    const taken: number[] = [];
    for (let i = 0; i < times; i++) {
      const began = performance.now();
      await act();
      taken.push(performance.now() - began);
    }
    taken.sort((a, b) => a - b);
    return [taken[Math.floor(times * 0.5)]!, taken[Math.floor(times * 0.99)]!];
  };
  const one = await measure(2000, () => ask(3));
  const all = await measure(
    300,
    () => Promise.all(Array.from({ length: ranks }, (_, rank) => ask(rank))),
  );
  await Promise.all(engines.map((e) => e.close()));
  bus.close();
  rmSync(folder, { recursive: true, force: true });
  return {
    title:
      "Round trip of a utility over the engine bus (ipc; engines and front-end share one thread)",
    columns: ["to", "p50, ms", "p99, ms"],
    rows: [["one rank", ...one], ["64 ranks at once, until the last has answered", ...all]],
  };
}
