/** What real engines said, replayed: our codec reads all of it and would have sent the same, and our machines come to the same end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterKernel, DEFAULT_LIMITS, type RunConfiguration } from "../../src/machines/mod.ts";
import type { KernelEvent } from "../../src/kernel/mod.ts";
import { SYSTEM } from "../../src/kernel/mod.ts";
import {
  decodeBackFrame,
  decodeCoordinatorFrames,
  type Decoded,
  decodeEngineHandshake,
  decodeEngineOutputs,
  decodeEngineRequest,
  decodeFirstFrame,
  decodeInit,
  decodeRequestOutputs,
  encodeAdd,
  encodeInit,
  encodeStartDpWave,
  encodeUtilityRequest,
} from "../../src/protocol/mod.ts";
import { parseClusterConfig, planOrThrow, planTopology } from "../../src/planning/mod.ts";
import { type Recorded, type Recording, recordings } from "./recording.ts";

const ALL = recordings();

/** What our codec makes of one frame of an engine. */
function readByUs({ socket, frames }: Recorded): Decoded<unknown> {
  switch (socket) {
    case "handshake":
      return decodeEngineHandshake(frames[0]!);
    case "input":
      return decodeFirstFrame(frames[0]!);
    case "backPublish":
      return decodeBackFrame(frames);
    default:
      return decodeEngineOutputs(frames);
  }
}

/** The frames that we would send instead of the recorded ones, made from what they mean. */
function sentByUs({ socket, frames }: Recorded): readonly Uint8Array[] {
  const value = <T>(decoded: Decoded<T>): T => {
    assert.ok(decoded.ok, JSON.stringify(decoded));
    return decoded.value;
  };
  if (socket === "handshake") return [encodeInit(value(decodeInit(frames[0]!)))];
  if (socket === "backPublish") {
    const said = value(decodeCoordinatorFrames(frames));
    return said.type === "coordinator-ready" ? frames : encodeStartDpWave(said);
  }
  const request = value(decodeEngineRequest(frames));
  if (request.type === "utility") return encodeUtilityRequest(request);
  // A request is passed on as it is.
  assert.equal(request.type, "add");
  return encodeAdd(frames[1]!, frames.slice(2));
}

test("there are recordings of both ends of the releases that we know", () => {
  const versions = [...new Set(ALL.map((r) => r.version))];
  assert.deepEqual(versions, ["0.12.0+cpu", "0.32.0+cpu"]);
});

for (const recording of ALL) {
  test(`${recording.name}: every frame of the engines is read, and every frame to them is what we would send`, () => {
    for (const line of recording.lines) {
      if (line.way === "from") {
        const read = readByUs(line);
        assert.ok(read.ok, `${line.t}: ${JSON.stringify(read)}`);
      } else {
        assert.deepEqual(sentByUs(line), line.frames, `at ${line.t}`);
      }
    }
  });

  test(`${recording.name}: the start-up forms`, () => {
    const run = new Replay(recording);
    for (const line of recording.lines) run.take(line);
    assert.equal(run.formed, true);
  });
}

/** Runs our start-up and wave machines on what the engines said. */
class Replay {
  readonly #kernel = clusterKernel();
  #system = this.#kernel.empty;
  /** START_DP_WAVE as our coordinator would have sent it: wave and reason. */
  readonly starts: number[] = [];
  formed = false;

  constructor({ size, version }: Recording) {
    const old = version.startsWith("0.12");
    const configured: RunConfiguration = {
      type: "configured",
      size,
      mode: "internal",
      ranks: Array.from({ length: size }, (_, rank) => ({ rank, local: false, headless: true })),
      launches: [],
      sockets: {
        handshake: "tcp://127.0.0.1:0",
        clients: [{ input: "tcp://127.0.0.1:1", output: "tcp://127.0.0.1:2", ours: false }],
        coordinator: {
          frontPublish: "ipc:///f",
          backPublish: "tcp://127.0.0.1:3",
          backOutput: "tcp://127.0.0.1:4",
        },
      },
      parallelConfig: null,
      parallelConfigHash: null,
      comparesHashes: true,
      waves: old ? "optimistic" : "evidence",
      strict: "muster",
      onFailure: "hold",
      leaseMs: 0,
      limits: DEFAULT_LIMITS,
    };
    this.say(SYSTEM, configured as unknown as KernelEvent);
    const bind = { bind: "tcp://127.0.0.1:29550" };
    this.say("startup", { type: "bound", socket: "handshake", endpoints: bind });
    this.say("waves", { type: "bound", socket: "coordinator", endpoints: {} });
  }

  get wave(): number {
    const { context } = this.#system.instances.get("waves")!.state.snapshot;
    return (context as { wave: number }).wave;
  }

  say(to: string, event: KernelEvent): void {
    const { system, effects } = this.#kernel.step(this.#system, {
      seq: this.#system.seq + 1,
      at: this.#system.at + 1,
      to,
      event,
    });
    this.#system = system;
    for (const effect of effects) {
      if (effect.kind !== "message") continue;
      const said = effect.effect as { type: string; wave?: number; what?: string };
      if (said.type === "waves.start") this.starts.push(said.wave!);
      if (said.type === "announce" && said.what === "formed") this.formed = true;
    }
  }

  take(line: Recorded): void {
    if (line.way === "to") return;
    const read = readByUs(line);
    assert.ok(read.ok);
    const said = read.value as { type: string };
    if (line.socket === "handshake") return this.say(`rank/${line.rank}/engine`, said);
    if (line.socket === "backPublish") {
      return this.say("waves", { type: said.type === "subscribe" ? "subscribed" : "unsubscribed" });
    }
    if (line.socket !== "backOutput") return;
    const { waveComplete, startWave, engineIndex } = said as unknown as {
      waveComplete: number | null;
      startWave: number | null;
      engineIndex: number;
    };
    if (waveComplete !== null) {
      this.say("waves", { type: "waveComplete", wave: waveComplete, engine: engineIndex });
    } else if (startWave !== null) {
      this.say("waves", { type: "startWave", wave: startWave, engine: engineIndex });
    }
  }
}

/** Tokens by request, in the order in which they came. */
function tokensOf({ lines }: Recording): Record<string, number[]> {
  const tokens: Record<string, number[]> = {};
  for (const { socket, frames } of lines.filter((l) => l.way === "from")) {
    if (socket !== "output" || frames[0]!.length === 16) continue;
    const read = decodeRequestOutputs(frames[0]!);
    assert.ok(read.ok);
    for (const { requestId, newTokenIds } of read.value) {
      (tokens[requestId] ??= []).push(...newTokenIds);
    }
  }
  return tokens;
}

/** Replays a recording with the front-end's wake-up for its first request in its place: the recorder played both sides of it. */
function replayed(name: string): { recording: Recording; run: Replay } {
  const recording = ALL.find((r) => r.name === name)!;
  const run = new Replay(recording);
  const first = recording.lines.findIndex((l) => l.socket === "backOutput");
  for (const line of recording.lines.slice(0, first)) run.take(line);
  run.say("waves", { type: "wake", exclude: 0, wave: 0 });
  for (const line of recording.lines.slice(first)) run.take(line);
  return { recording, run };
}

test("0.12.0/moe: two requests, five tokens each, and a wave for each of them", () => {
  const { recording, run } = replayed("0.12.0/moe");
  const tokens = [457, 9, 457, 9, 457];
  assert.deepEqual(tokensOf(recording), { one: tokens, two: tokens });
  // Wave 0 by the wake-up, wave 1 because engine 1 began it: as the recorded coordinator did.
  assert.deepEqual(run.starts, [0, 1]);
  assert.equal(run.wave, 2);
});

test("0.32.0/moe: waves by evidence, and a pause of all ranks that counts as a wave", () => {
  const { recording, run } = replayed("0.32.0/moe");
  const tokens = [296, 0, 485, 0, 485];
  assert.deepEqual(tokensOf(recording), { one: tokens, two: tokens });
  // The wake-up, and then what the engines said: rank 0 tells of every beginning, rank 1 of the wave that it began itself.
  assert.deepEqual(run.starts, [0, 0, 1]);
  // Two waves of requests; the collective in which the ranks agree to pause ends as wave 2 without ever having begun.
  assert.equal(run.wave, 3);
});

test("0.12.0/dense: ranks of a dense model wait for each other as well, so waves are coordinated for them too", () => {
  const { recording } = replayed("0.12.0/dense");
  // Nobody told rank 1 that rank 0 had a request: it was answered only when rank 1 got one of its own, a minute later.
  const sent = (id: number) =>
    recording.lines.filter((l) =>
      l.socket === "input" && l.way === "to" && l.frames[0]![0] === 0
    )[id]!;
  const answered = recording.lines.find((l) => {
    if (l.socket !== "output" || l.way === "to") return false;
    const read = decodeRequestOutputs(l.frames[0]!);
    return read.ok && read.value.some((o) => o.requestId === "one");
  })!;
  assert.ok(answered.t > sent(1).t);
  const waves = (generation: "0.12" | "newest") => {
    const config = planOrThrow(
      parseClusterConfig({ dataParallelSize: 2, generation, rpcBasePath: "/run/m" }),
    );
    return planOrThrow(planTopology(config)).coordinator?.waves;
  };
  assert.deepEqual([waves("0.12"), waves("newest")], [true, false]);
});

test("0.32.0/engine-dead: a dying engine says so on every output socket", () => {
  const recording = ALL.find((r) => r.name === "0.32.0/engine-dead")!;
  const dead = recording.lines.filter((l) => l.socket === "output").map(readByUs)
    .filter((r) => r.ok && (r.value as { type: string }).type === "engine-dead");
  assert.equal(dead.length, 2);
});

test("0.32.0/dense: pauses and resumes are answered with nothing, and the state between them is told", () => {
  const { lines } = ALL.find((r) => r.name === "0.32.0/dense")!;
  const replies = new Map<string, unknown>();
  for (const line of lines.filter((l) => l.socket === "output" && l.way === "from")) {
    const read = decodeEngineOutputs(line.frames);
    assert.ok(read.ok && read.value.type !== "engine-dead");
    const { utilityOutput } = read.value;
    if (utilityOutput !== null) {
      replies.set(utilityOutput.callId, utilityOutput.failure ?? utilityOutput.result?.value);
    }
  }
  assert.deepEqual(Object.fromEntries(replies), {
    // is_scheduler_paused, before
    100: false,
    101: false,
    // an id above 2^63
    "9223372036854775815": true,
    200:
      "Call to no_such_method method failed: 'EngineCoreProc' object has no attribute 'no_such_method'",
    // pause_scheduler, is_scheduler_paused, resume_scheduler
    300: null,
    301: null,
    400: true,
    401: true,
    500: null,
    501: null,
  });
});

test("0.32.0: an engine's first frame tells what 0.12 told in READY", () => {
  const { lines } = ALL.find((r) => r.name === "0.32.0/dense")!;
  const first = lines.find((l) => l.socket === "input" && l.way === "from")!;
  const read = decodeFirstFrame(first.frames[0]!);
  assert.ok(read.ok);
  const { facts } = read.value;
  assert.deepEqual(
    [facts?.vllmVersion, facts?.numGpuBlocks, facts?.blockSize, facts?.dataParallelSize],
    // A dense model's ranks know nothing of each other: each believes that it is alone.
    ["0.32.0", 16_384, 128, 1],
  );
});
