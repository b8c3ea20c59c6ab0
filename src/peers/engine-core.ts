/**
 * A serving engine without a GPU as a pure reducer: requests and tokens, statistics, waves, utilities and scaling put together
 * (wire spec, 4.3 to 4.6, 5.4, 7.8). The reference engine runs it over real sockets.
 */
import {
  type EngineOutput as ScalingOutput,
  type Meeting,
  type ScalingEngine,
  servingEngine,
  stepEngine,
} from "./engine-scaling.ts";
import {
  restingEngine,
  stepWaves,
  type WavesEngine,
  type WavesEngineInput,
  type WavesEngineOutput,
  type WavesRelease,
} from "./engine-waves.ts";

/** A request that the engine works on. */
export interface OpenRequest {
  readonly id: string;
  /** Which front-end hears of it. */
  readonly client: number;
  /** Tokens that it will still produce. */
  readonly left: number;
}

export interface CoreEngine {
  readonly scaling: ScalingEngine;
  readonly waves: WavesEngine;
  readonly requests: readonly OpenRequest[];
  /** Scheduler steps of this wave. */
  readonly steps: number;
  /** A pause that waits until the running requests are done (mode `wait`). */
  readonly waiting: PendingPause | null;
  readonly behaviour: CoreBehaviour;
}

interface PendingPause {
  readonly client: number;
  readonly call: string;
  readonly args: readonly unknown[];
}

export interface CoreBehaviour extends WavesRelease {
  /** A mixture of experts: engines run together, in waves. */
  readonly coordinated: boolean;
  /** How many requests are worked on at once; the others wait. */
  readonly capacity: number;
  /** Steps from one agreement to the next (vLLM: 32). */
  readonly agreeEvery: number;
  readonly blocks: number;
}

export type CoreInput =
  | {
    readonly type: "add";
    readonly request: string;
    readonly client: number;
    readonly wave: number;
    readonly tokens: number;
  }
  | { readonly type: "abort"; readonly requests: readonly string[] }
  | {
    readonly type: "utility";
    readonly client: number;
    readonly call: string;
    readonly method: string;
    readonly args: readonly unknown[];
  }
  | { readonly type: "startWave"; readonly wave: number; readonly exclude: number | null }
  /** The scheduler takes a step. */
  | { readonly type: "step" }
  | { readonly type: "agreed"; readonly round: number; readonly busy: boolean }
  | { readonly type: "met"; readonly what: Meeting["what"]; readonly busy: boolean };

export type CoreOutput =
  /** A token of a request, and why it ended where it did. */
  | {
    readonly type: "token";
    readonly client: number;
    readonly request: string;
    readonly finish: "length" | "abort" | null;
  }
  | {
    readonly type: "stats";
    readonly waiting: number;
    readonly running: number;
    readonly kvCacheUsage: number;
    readonly wave: number;
    readonly step: number;
  }
  | {
    readonly type: "reply";
    readonly client: number;
    readonly call: string;
    readonly value: unknown;
  }
  | {
    readonly type: "failure";
    readonly client: number;
    readonly call: string;
    readonly text: string;
  }
  /** Come together with the others; answered by `met` or `agreed`. */
  | { readonly type: "meet"; readonly meeting: Meeting; readonly busy: boolean }
  | Exclude<ScalingOutput, { type: "reply" | "failure" }>
  | WavesEngineOutput;

type Step = readonly [CoreEngine, readonly CoreOutput[]];

export const coreEngine = (
  rank: number,
  size: number,
  behaviour: CoreBehaviour,
  scaling: ScalingEngine = servingEngine(rank, size),
): CoreEngine => ({
  scaling,
  waves: { ...restingEngine(rank), paused: scaling.paused },
  requests: [],
  steps: 0,
  waiting: null,
  behaviour,
});

/** Does it take scheduler steps by itself now? */
export const isStepping = (engine: CoreEngine): boolean =>
  engine.behaviour.coordinated
    ? engine.waves.running && !engine.waves.agreeing
    : !engine.waves.paused && engine.requests.length > 0;

/** What an engine does with an input. */
export function stepCore(engine: CoreEngine, input: CoreInput): Step {
  const before = load(engine);
  const [next, outputs] = act(engine, input);
  const after = load(next);
  if (after.waiting === before.waiting && after.running === before.running) return [next, outputs];
  return [next, [...outputs, stats(next)]];
}

function act(engine: CoreEngine, input: CoreInput): Step {
  switch (input.type) {
    case "add": {
      const { request: id, client, tokens: left, wave } = input;
      const held = { ...engine, requests: [...engine.requests, { id, client, left }] };
      if (!engine.behaviour.coordinated) return [held, []];
      return wave_(held, { type: "add", request: id, wave });
    }
    case "abort":
      return aborted(engine, engine.requests.filter((r) => input.requests.includes(r.id)));
    case "startWave":
      // Once it is asked to pause, nobody wakes it.
      return engine.scaling.pausing !== null || !engine.behaviour.coordinated
        ? [engine, []]
        : wave_(engine, input);
    case "agreed":
      return wave_({ ...engine, steps: input.busy ? engine.steps : 0 }, input);
    case "step":
      return stepped(engine);
    case "utility":
      return utility(engine, input);
    case "met":
      return met(engine, input.what, input.busy);
  }
}

function stepped(engine: CoreEngine): Step {
  if (!isStepping(engine)) return [engine, []];
  const { capacity, agreeEvery, coordinated } = engine.behaviour;
  const outputs: CoreOutput[] = [];
  const requests: OpenRequest[] = [];
  let next: CoreEngine = { ...engine, steps: engine.steps + 1 };
  for (const [i, r] of engine.requests.entries()) {
    if (i >= capacity) {
      requests.push(r);
      continue;
    }
    const finish = r.left <= 1 ? "length" : null;
    outputs.push({ type: "token", client: r.client, request: r.id, finish });
    if (finish === null) requests.push({ ...r, left: r.left - 1 });
    else next = wave_(next, { type: "finish", request: r.id })[0];
  }
  next = { ...next, requests };
  if (coordinated && next.steps % agreeEvery === 0) {
    const [agreeing, said] = wave_(next, { type: "stepped" });
    next = agreeing;
    outputs.push(...said);
  }
  if (next.waiting !== null && requests.length === 0) {
    const { client, call, args } = next.waiting;
    const [paused, said] = ask({ ...next, waiting: null }, client, call, "pause_scheduler", args);
    return [paused, [...outputs, ...said]];
  }
  return [next, outputs];
}

function aborted(engine: CoreEngine, which: readonly OpenRequest[]): Step {
  let next = engine;
  for (const { id } of which) next = wave_(next, { type: "finish", request: id })[0];
  next = { ...next, requests: next.requests.filter((r) => !which.includes(r)) };
  return [
    next,
    which.map((r) => ({ type: "token", client: r.client, request: r.id, finish: "abort" })),
  ];
}

const ANSWERS: Readonly<Record<string, unknown>> = {
  get_supported_tasks: ["generate"],
  reset_prefix_cache: true,
  reset_mm_cache: null,
  reset_encoder_cache: null,
  execute_dummy_batch: null,
  profile: null,
  is_sleeping: false,
  list_loras: [],
};

function utility(engine: CoreEngine, input: CoreInput & { type: "utility" }): Step {
  const { client, call, method, args } = input;
  if (method in ANSWERS) {
    return [engine, [{ type: "reply", client, call, value: ANSWERS[method] }]];
  }
  if (method === "pause_scheduler") {
    const mode = String(args[0] ?? "abort");
    if (!["abort", "wait", "keep"].includes(mode)) {
      const text = `Call to pause_scheduler method failed: Invalid pause mode: ${mode}`;
      return [engine, [{ type: "failure", client, call, text }]];
    }
    if (mode === "wait" && engine.requests.length > 0 && !engine.scaling.paused) {
      return [{ ...engine, waiting: { client, call, args } }, []];
    }
    if (mode === "abort") {
      const [rest, said] = aborted(engine, engine.requests);
      const [paused, more] = ask(rest, client, call, method, args);
      return [paused, [...said, ...more]];
    }
  }
  return ask(engine, client, call, method, args);
}

/** A utility that scaling knows: the reply may come when all engines have met. */
function ask(
  engine: CoreEngine,
  client: number,
  call: string,
  method: string,
  args: readonly unknown[],
): Step {
  const named = `${client} ${call}`;
  const [scaling, said] = stepEngine(engine.scaling, {
    type: "utility",
    call: named,
    method,
    args,
  });
  return told(engine, scaling, said);
}

function met(engine: CoreEngine, what: Meeting["what"], busy: boolean): Step {
  const [scaling, said] = stepEngine(engine.scaling, { type: "met", what });
  let [next, outputs] = told(engine, scaling, said);
  if (what === "pause") [next] = wave_(next, { type: "paused", drop: false });
  if (what === "resume") {
    const [resumed, more] = wave_({ ...next, steps: 0 }, { type: "resumed", busy });
    next = resumed;
    outputs = [...outputs, ...more];
  }
  return [next, outputs];
}

/** Passes on what the scaling part said, with the meetings that it newly waits for. */
function told(engine: CoreEngine, scaling: ScalingEngine, said: readonly ScalingOutput[]): Step {
  const busy = engine.requests.length > 0;
  const outputs: CoreOutput[] = said.map((o) => {
    if (o.type !== "reply" && o.type !== "failure") return o;
    const [client, call] = o.call.split(" ") as [string, string];
    return { ...o, client: Number(client), call };
  });
  for (const meeting of scaling.meetings) {
    if (engine.scaling.meetings.some((m) => m.what === meeting.what)) continue;
    outputs.push({ type: "meet", meeting, busy });
  }
  return [{ ...engine, scaling }, outputs];
}

function wave_(engine: CoreEngine, input: WavesEngineInput): Step {
  const [waves, outputs] = stepWaves(engine.waves, input, engine.behaviour);
  return [{ ...engine, waves }, outputs];
}

function load(engine: CoreEngine): { waiting: number; running: number } {
  const running = Math.min(engine.requests.length, engine.behaviour.capacity);
  return { running, waiting: engine.requests.length - running };
}

function stats(engine: CoreEngine): CoreOutput {
  const kvCacheUsage = Math.min(
    1,
    (engine.requests.length * 10) / Math.max(1, engine.behaviour.blocks),
  );
  return {
    type: "stats",
    ...load(engine),
    kvCacheUsage,
    wave: engine.behaviour.coordinated ? engine.waves.wave : 0,
    step: engine.behaviour.coordinated ? engine.steps : 0,
  };
}
