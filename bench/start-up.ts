/** How fast a cluster forms up: over real sockets with a durable journal, and through the machines alone. */
import { Buffer } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Coordinator } from "../src/coordinator.ts";
import { type KernelEvent, SYSTEM } from "../src/kernel/mod.ts";
import { clusterKernel, configureRun } from "../src/machines/mod.ts";
import { parseClusterConfig, planOrThrow, planTopology } from "../src/planning/mod.ts";
import { encodeEngineHandshake } from "../src/protocol/mod.ts";
import type { BenchTable } from "./run.ts";

export const name = "start-up";
/** Engines, and when they connect. */
const START_UPS = [[4, "after"], [64, "after"], [1024, "after"], [1024, "before"]] as const;
const ROUNDS = 15;
/** The second is ten times the first. */
const SYSTEM_SIZES = [6_000, 60_000, 10_000];
const GROUP = 16;
const PYTHON = ".venv/bin/python";

export async function run(): Promise<BenchTable[]> {
  return [await overSockets(), throughTheMachines()];
}

interface Took {
  readonly seconds: number;
  readonly cpu: number;
}

/** Whether the engines connect before the clock starts, or after. */
type When = (typeof START_UPS)[number][1];

async function overSockets(): Promise<BenchTable> {
  const compared = existsSync(PYTHON);
  const rows: (string | number)[][] = [];
  let first: Took | undefined;
  for (const [size, when] of START_UPS) {
    const ours: Took[] = [];
    const originals: number[] = [];
    const bares: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      ours.push(await coordinator(size, when));
      if (!compared) continue;
      originals.push(await pythonLoop(size, when, "original"));
      bares.push(await pythonLoop(size, when, "bare"));
    }
    if (size === 1024) first ??= ours[0];
    const seconds = median(ours.map((took) => took.seconds));
    const besides = (them: readonly number[]) =>
      compared ? [median(them), seconds / median(them)] : ["-", "-"];
    rows.push([
      `${size.toLocaleString("en-US")}${when === "before" ? ", connected before" : ""}`,
      seconds,
      median(ours.map((took) => took.cpu)),
      size / seconds,
      ...besides(originals),
      ...besides(bares),
      process.resourceUsage().maxRSS / 1000,
    ]);
  }
  return {
    title:
      "Start-up over tcp: from the first connection (or HELLO) to formed up, journal in a file, synced",
    columns: [
      "engines",
      "Muster s",
      "CPU s",
      "engines/s",
      "the original's s",
      "times it",
      "bare loop s",
      "times it",
      "peak MB",
    ],
    rows,
    notes: [
      `Medians of ${ROUNDS} rounds, in turns. All engines are in one other process, which speaks ZMTP itself to need little: each connects, says HELLO, and says`,
      "READY on INIT. The last row is the handshake alone, of engines that are connected before the clock starts.",
      `The first start-up of 1,024 in the process, for which V8 still compiles: ${
        first!.seconds.toPrecision(3)
      } s, CPU ${first!.cpu.toPrecision(3)} s.`,
      "The original's loop (pyzmq, msgspec) polls, looks through its list of engines, checks, and encodes INIT for each, as vLLM's front-end does.",
      "The bare loop only decodes, looks up by a hash, answers and counts. Neither has deadlines, a journal or a status.",
      ...(compared
        ? []
        : [`No comparison: ${PYTHON} is missing (test/interop/setup.sh makes it).`]),
    ],
  };
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function coordinator(size: number, when: When): Promise<Took> {
  const directory = mkdtempSync(join(tmpdir(), "mb-"));
  const coordinator = await Coordinator.start({
    cluster: {
      dataParallelSize: size,
      dataParallelSizeLocal: 0,
      dataParallelAddress: "127.0.0.1",
      dataParallelRpcPort: await freePort(),
      allowLoopback: true,
      rpcBasePath: directory,
    },
    journal: join(directory, "journal"),
    durability: "sync",
  });
  while (coordinator.status().endpoints["handshake"] === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const { bind } = coordinator.status().endpoints["handshake"] as { bind: string };
  const engines = await startEngines(bind, size, when);
  const began = performance.now();
  const usage = process.cpuUsage();
  engines.stdin!.write("go\n");
  await coordinator.ready();
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(usage);
  const cpu = (user + system) / 1e6;
  await ended(engines);
  await coordinator.close();
  rmSync(directory, { recursive: true, force: true });
  return { seconds, cpu };
}

async function pythonLoop(size: number, when: When, kind: "original" | "bare"): Promise<number> {
  const loop = spawn(PYTHON, [
    fileURLToPath(new URL("start-up/loop.py", import.meta.url)),
    `${size}`,
    kind,
  ]);
  const address = await line(loop);
  const engines = await startEngines(address, size, when);
  const began = performance.now();
  engines.stdin!.write("go\n");
  await line(loop);
  const seconds = (performance.now() - began) / 1000;
  await ended(engines);
  return seconds;
}

const HELLO = encodeEngineHandshake({ type: "hello", local: false, headless: true });
const READY = encodeEngineHandshake({
  type: "ready",
  local: false,
  headless: true,
  numGpuBlocks: 1000,
  dpStatsAddress: null,
});

/** The engines' process; it needs nothing but Python's own library. */
async function startEngines(address: string, size: number, when: When): Promise<ChildProcess> {
  const engines = spawn(existsSync(PYTHON) ? PYTHON : "python3", [
    fileURLToPath(new URL("start-up/engines.py", import.meta.url)),
    address,
    `${size}`,
    when,
    Buffer.from(HELLO).toString("hex"),
    Buffer.from(READY).toString("hex"),
  ], { stdio: ["pipe", "pipe", "inherit"] });
  await line(engines);
  return engines;
}

/** The next line that the child says. */
const line = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = "";
    const hear = (chunk: unknown) => {
      text += String(chunk);
      if (!text.includes("\n")) return;
      child.stdout!.off("data", hear);
      resolve(text.trim());
    };
    child.stdout!.on("data", hear);
    child.once("error", (error) => reject(new Error(`the engines need python3: ${error.message}`)));
    child.once("close", (code) => reject(new Error(`ended with ${code}`)));
  });

function ended(child: ChildProcess): Promise<void> {
  child.stdin!.end();
  return new Promise((resolve) => child.once("close", () => resolve()));
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function throughTheMachines(): BenchTable {
  formUp(1000); // V8 compiles
  const [small, large, ...others] = SYSTEM_SIZES.map((size) => {
    const rounds = [1, 2, 3].map(() => formUp(size)).sort((a, b) => a.seconds - b.seconds);
    // What an earlier round has left may go while a later one is weighed.
    return { size, ...rounds[0]!, megabytes: Math.max(...rounds.map((r) => r.megabytes)) };
  });
  const times = large!.seconds / small!.seconds;
  const rows = [small!, ...others, large!].map(({ size, seconds, megabytes }) => [
    size,
    seconds,
    2 * size / seconds,
    megabytes,
  ]);
  return {
    title: "Start-up through the machines alone: configuration, HELLO and READY of every engine",
    columns: ["engines", "s", "inputs/s", "heap MB"],
    rows,
    notes: [
      `Best of three. Ten times the engines (${small!.size.toLocaleString("en-US")} and ${
        large!.size.toLocaleString("en-US")
      }) take ${times.toPrecision(3)} times as long.`,
    ],
  };
}

/** What lives. */
function heap(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}

function formUp(size: number): { seconds: number; megabytes: number } {
  const before = heap();
  const topology = planOrThrow(planTopology(planOrThrow(parseClusterConfig({
    dataParallelSize: size,
    dataParallelSizeLocal: 0,
    dataParallelAddress: "10.0.0.1",
    rpcBasePath: "/tmp/m",
  }))));
  const fold = clusterKernel().fold();
  const say = (to: string, event: KernelEvent) => {
    fold.apply({ seq: fold.seq + 1, at: fold.seq + 1, to, event });
    if (fold.seq % GROUP === 0) fold.system(); // as the host, which steps what has arrived together
  };
  const began = performance.now();
  say(SYSTEM, configureRun(topology, { launches: [] }) as unknown as KernelEvent);
  const endpoints = {
    frontPublish: "tcp://h:1",
    backPublish: "tcp://h:2",
    backOutput: "tcp://h:3",
  };
  say("waves", { type: "bound", socket: "coordinator", endpoints });
  const bus = { input: "tcp://h:4", output: "tcp://h:5" };
  say("startup", { type: "bound", socket: "bus0", endpoints: bus });
  say("startup", { type: "bound", socket: "handshake", endpoints: { bind: "tcp://h:6" } });
  for (let rank = 0; rank < size; rank++) {
    say(`rank/${rank}/engine`, { type: "hello", local: false, headless: true });
  }
  const ready = {
    type: "ready",
    local: false,
    headless: true,
    blocks: 1000,
    statsAddress: null,
    hash: null,
  };
  for (let rank = 0; rank < size; rank++) say(`rank/${rank}/engine`, ready);
  const seconds = (performance.now() - began) / 1000;
  const megabytes = (heap() - before) / 1e6;
  const { ready: count } = fold.get("startup")!.state.snapshot.context as {
    ready: number;
  };
  if (count !== size) throw new Error(`${count} of ${size} are ready`);
  return { seconds, megabytes };
}
