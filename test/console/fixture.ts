/** Journals made without a world: runs of the start-up machines, recorded as a coordinator would. */
import { asciiJson, digestOf, encodeHeader, encodeRecord, FORMAT } from "../../src/journal/mod.ts";
import { type KernelEvent, SYSTEM, type System } from "../../src/kernel/mod.ts";
import { clusterKernel } from "../../src/machines/mod.ts";
import { configuration, type Overrides } from "../machines/fixture.ts";

const kernel = clusterKernel();
const START = Date.UTC(2026, 0, 15, 9, 30);

/** A run that is recorded line by line. */
export class RecordedRun {
  system: System = kernel.empty;
  readonly lines: string[] = [];
  readonly header: string;
  #at = START;

  constructor(size = 4, overrides: Overrides = {}, run = "6f1a7c1e") {
    this.header = encodeHeader({
      journal: "muster",
      format: FORMAT,
      run,
      fence: 1,
      first: 1,
      at: START,
      machines: {},
    });
    const ranks = Array.from(
      { length: size },
      (_, rank) => ({ rank, local: true, headless: false }),
    );
    this.say(SYSTEM, configuration({ size, ranks, ...overrides }) as unknown as KernelEvent);
    this.say("startup", {
      type: "bound",
      socket: "handshake",
      endpoints: { bind: "tcp://127.0.0.1:29550" },
    });
  }

  /** One input, `afterMs` after the one before. */
  say(to: string, event: KernelEvent, afterMs = 120): this {
    this.#at += afterMs;
    const input = { seq: this.system.seq + 1, at: this.#at, to, event };
    const step = kernel.step(this.system, input);
    this.system = step.system;
    const digest = digestOf(step.system, step.effects);
    this.lines.push(encodeRecord({ ...input, fence: 1, digest }, asciiJson(event)));
    return this;
  }

  hello(rank: number, afterMs?: number): this {
    return this.say(
      `rank/${rank}/engine`,
      { type: "hello", local: true, headless: false },
      afterMs,
    );
  }

  ready(rank: number, afterMs?: number): this {
    const event = { blocks: 7000 + rank, statsAddress: null, hash: null };
    return this.say(
      `rank/${rank}/engine`,
      { type: "ready", local: true, headless: false, ...event },
      afterMs,
    );
  }

  fire(to: string, delay: string, afterMs?: number): this {
    const timer = [...this.system.instances].find((i) => i.id === to)!.timers
      .find((t) => t.timer.startsWith(`xstate.after.${delay}.`))!;
    return this.say(
      to,
      { type: "timer.fired", timer: timer.timer, generation: timer.generation },
      afterMs,
    );
  }

  /** The journal as it would be in its file. */
  text(): string {
    return this.header + this.lines.join("");
  }
}

const launches = (size: number): Overrides["launches"] =>
  Array.from({ length: size }, (_, i) => ({
    id: `engine-${i}`,
    ranks: [i],
    argv: ["vllm", "serve"],
    env: {},
    cwd: null,
    inherit: true,
  }));

const launched = (size: number): RecordedRun => {
  const run = new RecordedRun(size, { launches: launches(size) });
  run.say("launcher", { type: "keeperPlaced", socket: "/run/k", token: "t", call: "2.1" });
  run.say("launcher", { type: "keeperUp" });
  const calls = new Map(
    [...run.system.instances].flatMap((i) => i.calls.map((c) => [i.id, c.id] as const)),
  );
  for (let i = 0; i < size; i++) {
    run.say(`process/engine-${i}`, {
      type: "spawned",
      pid: 4700 + i,
      call: calls.get(`process/engine-${i}`)!,
    });
  }
  return run;
};

/** Four of six ranks are ready, one loads, one has not said HELLO; a stranger came by. */
export function formingRun(): RecordedRun {
  const run = launched(6);
  for (const rank of [0, 1, 2, 3, 4]) run.hello(rank);
  run.say("startup", { type: "strangers", kind: "http", count: 3, sample: "GET / HTTP/1.1" }, 7000);
  for (const rank of [0, 2, 1, 3]) run.ready(rank, 900);
  return run;
}

/** A process was killed while it loaded. */
export function failedRun(): RecordedRun {
  return formingRun().say("process/engine-4", {
    type: "exited",
    code: null,
    signal: "SIGKILL",
    tail: [
      "INFO 01-15 09:30:11 [gpu_model_runner.py] Loading model weights took 41.2 GB",
      "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB.",
    ],
  }, 12_500);
}

/** Everyone is ready. */
export function formedRun(size = 8): RecordedRun {
  const run = launched(size);
  for (let rank = 0; rank < size; rank++) run.hello(rank);
  for (let rank = 0; rank < size; rank++) run.ready(rank, 400);
  return run;
}

/** A long life: READY said again and again (which is ignored), strangers now and then, until there are `records`. */
export function longRun(records: number, size = 8): RecordedRun {
  const run = formedRun(size);
  for (let i = 0; run.lines.length < records; i++) {
    if (i % 997 === 0) {
      run.say("startup", { type: "strangers", kind: "http", count: 1, sample: `GET /${i}` }, 6000);
    } else if (i % 501 === 0) run.say("rank/0/engine", { type: "mystery" }, 50);
    else run.ready(i % size, 37);
  }
  return run;
}
