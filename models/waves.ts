/**
 * Request waves: the DP coordinator's machine as it runs in production, engines that run and rest together, a front-end with requests,
 * pauses of all engines, and crashes of the coordinator.
 *
 * A request is only served while every engine runs, because the experts of a model are spread over all of them.
 */
import { defineModel, type Model, type Reducer, send, type World } from "../src/checker/mod.ts";
import { counted } from "../src/checker/words.ts";
import { effect, type Json, type Output } from "../src/kernel/mod.ts";
import { waves as coordinator, type WavesInput } from "../src/machines/mod.ts";
import {
  restingEngine,
  stepWaves,
  type WavesEngine,
  type WavesEngineInput,
} from "../src/peers/engine-waves.ts";
import {
  finished,
  type FrontEnd,
  frontEnd,
  heard,
  send as dispatch,
  wakeAgain,
} from "../src/peers/front-end.ts";

export interface WavesOptions {
  readonly engines?: number;
  /** Requests that arrive in a run. Default 2. */
  readonly requests?: number;
  /** How often all engines are paused and resumed. Default 0. */
  readonly pauses?: number;
  /** Waves that end while a request or its answer is on its way. Default 1. */
  readonly overtakes?: number;
  /** Crashes of the coordinator. Default 0. */
  readonly crashes?: number;
  /**
   * Whether engines still hold what a coordinator that crashed had not read. Otherwise all that was on its way to it is lost, which is what
   * may happen between the reading of a frame and its record in the journal. Default false.
   */
  readonly kept?: boolean;
  /** What moves the coordinator's state: what engines say (newest), or the wake-up itself (0.12). Default `evidence`. */
  readonly rule?: WavesInput["rule"];
}

// ---- engines ----------------------------------------------------------------------------------------------------

interface Engines {
  readonly all: readonly WavesEngine[];
  readonly pausesLeft: number;
  /** How often a wave may still end while a request or its answer is on its way: without a limit, waves would be counted for ever. */
  readonly overtakesLeft: number;
}

type EnginesEvent =
  | WavesEngineInput & { readonly rank: number }
  | { readonly type: "agree"; readonly overtakes: boolean }
  | { readonly type: "pause" | "resume" };

const busy = (engine: WavesEngine): boolean => engine.requests.length > 0;

const engines = (newest: boolean): Reducer => ({
  id: "engines",
  initial: (input) => {
    const { size, pauses, overtakes } = input as Record<"size" | "pauses" | "overtakes", number>;
    const all = Array.from({ length: size }, (_, rank) => restingEngine(rank));
    return { state: { all, pausesLeft: pauses, overtakesLeft: overtakes } as unknown as Json };
  },
  step: (state, given) => {
    const { all, pausesLeft, overtakesLeft } = state as unknown as Engines;
    const event = given as unknown as EnginesEvent;
    const next = [...all];
    const outputs: Output[] = [];
    const take = (rank: number, what: WavesEngineInput): void => {
      const [after, said] = stepWaves(next[rank]!, what, { saysWhenItRuns: newest });
      next[rank] = after;
      for (const output of said) {
        if (output.type !== "agree") {
          outputs.push(effect({ type: `engine.${output.type}`, wave: output.wave, rank }));
        }
      }
    };
    let pauses = pausesLeft;
    let overtakes = overtakesLeft;
    const ranks = all.map((_, rank) => rank);
    switch (event.type) {
      case "agree": {
        if (event.overtakes) overtakes--;
        const round = all[0]!.round;
        const somebody = all.some(busy);
        for (const rank of ranks) take(rank, { type: "agreed", round, busy: somebody });
        break;
      }
      case "pause":
        pauses--;
        for (const rank of ranks) take(rank, { type: "paused", drop: false });
        break;
      case "resume":
        for (const rank of ranks) take(rank, { type: "resumed", busy: all.some(busy) });
        break;
      default: {
        const { rank, ...what } = event;
        take(rank, what as WavesEngineInput);
        if (event.type === "finish") outputs.push(effect({ type: "engine.finished", rank }));
      }
    }
    // Engines of a group are in the same round; how many there were does not matter.
    const rounds = Math.min(...next.map((e) => e.round));
    const settled = next.map((e) => ({ ...e, round: e.round - rounds }));
    const after: Engines = { all: settled, pausesLeft: pauses, overtakesLeft: overtakes };
    return { state: after as unknown as Json, outputs };
  },
});

const enginesOf = (w: World): Engines => w.at("engines")!.value as Engines;

/** What engines do by themselves. */
function engineMoves(w: World): EnginesEvent[] {
  const { all, pausesLeft, overtakesLeft } = enginesOf(w);
  const together = all.every((e) => e.running);
  const moves: EnginesEvent[] = [];
  for (const { rank, running, agreeing, requests } of all) {
    if (running && !agreeing) moves.push({ type: "stepped", rank });
    if (together) { for (const request of requests) moves.push({ type: "finish", rank, request }); }
  }
  if (together && all.every((e) => e.agreeing && e.round === all[0]!.round)) {
    const overtakes = !all.some(busy) &&
      all.some(({ rank }) =>
        w.messages(`input/${rank}`, "engines").length > 0 ||
        w.messages(`reply/${rank}`, "front-end").length > 0
      );
    if (!overtakes || overtakesLeft > 0) moves.push({ type: "agree", overtakes });
  }
  if (all.some((e) => e.paused)) moves.push({ type: "resume" });
  else if (pausesLeft > 0) moves.push({ type: "pause" });
  return moves;
}

// ---- the front-end ----------------------------------------------------------------------------------------------

interface Front {
  readonly front: FrontEnd;
  /** Requests that have not arrived yet. */
  readonly left: number;
}

type FrontEvent =
  | { readonly type: "arrives"; readonly rank: number }
  | { readonly type: "published"; readonly wave: number; readonly running: boolean }
  | { readonly type: "finished"; readonly rank: number };

const front: Reducer = {
  id: "front-end",
  initial: (input) => {
    const { size, requests } = input as { size: number; requests: number };
    return { state: { front: frontEnd(size), left: requests } as unknown as Json };
  },
  step: (state, given) => {
    const { front, left } = state as unknown as Front;
    const event = given as unknown as FrontEvent;
    const to = (front: FrontEnd, left: number, outputs: Output[] = []) => ({
      state: { front: { ...front, next: 0 }, left } as unknown as Json,
      outputs,
    });
    switch (event.type) {
      case "arrives": {
        if (left === 0) return undefined;
        const { front: after, wave, wake } = dispatch(front, event.rank);
        return to(after, left - 1, [
          ...(wake === null ? [] : [effect({ type: "front.wake", ...wake })]),
          effect({ type: "front.add", rank: event.rank, request: `${left}`, wave }),
        ]);
      }
      case "published": {
        const after = heard(front, { counts: null, wave: event.wave, running: event.running });
        const again = wakeAgain(after);
        return to(after, left, again === null ? [] : [effect({ type: "front.wake", ...again })]);
      }
      case "finished":
        return to(finished(front, event.rank), left);
    }
  },
};

// ---- the model --------------------------------------------------------------------------------------------------

/** Waves of `engines` engines. */
export function waves(options: WavesOptions = {}): Model {
  const {
    engines: size = 2,
    requests = 2,
    pauses = 0,
    crashes = 0,
    overtakes = 1,
    kept = false,
    rule = "evidence",
  } = options;
  const ranks = Array.from({ length: size }, (_, r) => r);
  const input: WavesInput = {
    sockets: { frontPublish: "f", backPublish: "b", backOutput: "o" },
    engines: size,
    coordinates: true,
    rule,
    remindMs: 5000,
  };
  const inFlight = (w: World): number =>
    (w.at("front-end")!.value as Front).front.inFlight.reduce((a, b) => a + b, 0);
  /** No message is on its way: seconds pass before a reminder or the next statistics, and messages take less. */
  const quiet = (w: World): boolean =>
    w.messages("up", "waves").length + w.messages("output", "waves").length +
          w.messages("front", "front-end").length === 0 &&
    ranks.every((r) =>
      w.messages(`back/${r}`, "engines").length + w.messages(`input/${r}`, "engines").length === 0
    );
  /** The coordinator tells front-ends the wave and whether engines run with its statistics, at the latest every five seconds. */
  const statistics = (w: World): { type: string; wave: number; running: boolean }[] => {
    if (w.down("waves") || !w.in("waves", "serving") || !quiet(w)) return [];
    const { wave } = w.at("waves")!.context;
    const running = w.in("waves", "serving.running");
    const { front } = w.at("front-end")!.value as Front;
    return front.wave === wave && front.running === running
      ? []
      : [{ type: "published", wave, running }];
  };
  return defineModel({
    name: `waves of ${counted(size, "engine")}, ${counted(requests, "request")}, ${
      counted(pauses, "pause")
    }, ${counted(crashes, "crash", "crashes")}${kept ? ", unread frames kept" : ""} (${rule})`,
    processes: {
      waves: { runs: coordinator, input: input as unknown as Json },
      engines: {
        runs: engines(rule === "evidence"),
        input: { size, pauses, overtakes },
        may: engineMoves,
      },
      "front-end": {
        runs: front,
        input: { size, requests },
        may: (w) => [...ranks.map((rank) => ({ type: "arrives", rank })), ...statistics(w)],
      },
    },
    channels: {
      front: "fifo",
      up: { kind: "fifo", open: (w) => !w.in("waves", "binding") },
      output: { kind: "fifo", kept },
      ...Object.fromEntries(
        ranks.flatMap((
          r,
        ) => [[`back/${r}`, "fifo"], [`input/${r}`, "fifo"], [`reply/${r}`, "fifo"]]),
      ),
    },
    effects: {
      "waves.ready": () => [],
      "waves.start": ({ wave, exclude }) =>
        ranks.map((rank) =>
          send(`back/${rank}`, "engines", { type: "startWave", rank, wave, exclude })
        ),
      "waves.publish": ({ wave, running }) => [
        send("front", "front-end", { type: "published", wave, running }),
      ],
      "engine.startWave": ({ wave, rank }) => [
        send("output", "waves", { type: "startWave", wave, engine: rank }),
      ],
      "engine.waveComplete": ({ wave, rank }) => [
        send("output", "waves", { type: "waveComplete", wave, engine: rank }),
      ],
      "engine.finished": ({ rank }) => [
        send(`reply/${rank}`, "front-end", { type: "finished", rank }),
      ],
      "front.wake": ({ exclude, wave }) => [send("up", "waves", { type: "wake", exclude, wave })],
      "front.add": ({ rank, request, wave }) => [
        send(`input/${rank}`, "engines", { type: "add", rank, request, wave }),
      ],
    },
    resources: {
      "socket.coordinator": (_, w) =>
        w.in("waves", "binding")
          ? [{
            event: {
              type: "bound",
              socket: "coordinator",
              endpoints: { frontPublish: "f", backPublish: "b", backOutput: "o" },
            },
          }]
          : w.in("waves", "gathering")
          ? [{ event: { type: "subscribed" } }]
          : [],
    },
    timers: {
      when: (_, __, w) => quiet(w),
    },
    faults: { crashes: [{ nodes: ["waves"], budget: crashes, restart: "journal" }] },
    monitors: {
      published: {
        initial: { wave: 0, wrong: false },
        step: (memory, h) => {
          const { wave, wrong } = memory as { wave: number; wrong: boolean };
          if (h.kind !== "effect" || h.instance !== "waves") return memory;
          const told = h.effect["wave"] as number | undefined;
          if (told === undefined) return memory;
          return { wave: Math.max(wave, told), wrong: wrong || told < wave };
        },
      },
    },
    properties: {
      always: {
        "no wave is published or started that is older than the last": (w) =>
          !w.memory("published").wrong,
      },
      sometimes: {
        "all engines run": (w) => enginesOf(w).all.every((e) => e.running),
        "every request is served, and all rest": (w) =>
          (w.at("front-end")!.value as Front).left === 0 && inFlight(w) === 0 &&
          enginesOf(w).all.every((e) => !e.running),
      },
      leadsTo: {
        "every request is served": [(w) => inFlight(w) > 0, (w) => inFlight(w) === 0],
      },
    },
  });
}
