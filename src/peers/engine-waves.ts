/**
 * The engine's side of request waves as a pure reducer (wire spec, 5.4, engine behaviour): when it runs, which wave it is in, and what
 * it tells the coordinator.
 *
 * Engines that run come together after every few steps and agree whether any of them still has work; here that is an
 * *agreement*, which the engine asks for and hears the result of. When nobody has, the wave is complete and all rest.
 */

export interface WavesEngine {
  readonly rank: number;
  readonly wave: number;
  readonly running: boolean;
  /** Requests that are not finished, in order of arrival. */
  readonly requests: readonly string[];
  /** Agreements so far in this wave: engines of one group agree round by round. */
  readonly round: number;
  /** It has asked for the agreement of this round and waits. */
  readonly agreeing: boolean;
  /** Paused by a utility: it holds its requests and does not run. */
  readonly paused: boolean;
}

export type WavesEngineInput =
  /** A request, stamped with the wave that its front-end believes in. */
  | { readonly type: "add"; readonly request: string; readonly wave: number }
  | { readonly type: "finish"; readonly request: string }
  /** START_DP_WAVE of the coordinator. */
  | { readonly type: "startWave"; readonly wave: number; readonly exclude: number | null }
  /** It has stepped often enough to come together with the others. */
  | { readonly type: "stepped" }
  | { readonly type: "agreed"; readonly round: number; readonly busy: boolean }
  /** All engines have paused, or resumed, together; `busy`: some engine has work. */
  | { readonly type: "paused"; readonly drop: boolean }
  | { readonly type: "resumed"; readonly busy: boolean };

export type WavesEngineOutput =
  /** To the coordinator, or to the own front-end where there is none. */
  | { readonly type: "startWave"; readonly wave: number }
  | { readonly type: "waveComplete"; readonly wave: number }
  | {
    readonly type: "agree";
    readonly wave: number;
    readonly round: number;
    readonly busy: boolean;
  };

/** What the releases differ in. */
export interface WavesRelease {
  /** Newest: rank 0 also tells the coordinator when it begins to run by itself. */
  readonly saysWhenItRuns: boolean;
}

export const restingEngine = (rank: number, wave = 0): WavesEngine => ({
  rank,
  wave,
  running: false,
  requests: [],
  round: 0,
  agreeing: false,
  paused: false,
});

type Step = readonly [WavesEngine, readonly WavesEngineOutput[]];

/** What an engine does with an input. */
export function stepWaves(
  engine: WavesEngine,
  input: WavesEngineInput,
  release: WavesRelease,
): Step {
  switch (input.type) {
    case "add":
      return added(engine, input, release);
    case "finish":
      return [{ ...engine, requests: engine.requests.filter((r) => r !== input.request) }, []];
    case "startWave": {
      const ours = input.exclude !== engine.rank && input.wave >= engine.wave;
      if (engine.paused || !ours) return [engine, []];
      if (engine.running) {
        return input.wave === engine.wave
          ? [engine, []]
          : [{ ...engine, wave: input.wave, round: 0, agreeing: false }, []];
      }
      return run({ ...engine, wave: input.wave }, release);
    }
    case "stepped": {
      if (!engine.running || engine.agreeing) return [engine, []];
      const { wave, round } = engine;
      const busy = engine.requests.length > 0;
      return [{ ...engine, agreeing: true }, [{ type: "agree", wave, round, busy }]];
    }
    case "agreed": {
      if (!engine.agreeing || input.round !== engine.round) return [engine, []];
      if (input.busy) return [{ ...engine, agreeing: false, round: engine.round + 1 }, []];
      const { wave, rank } = engine;
      const rested: WavesEngine = {
        ...engine,
        wave: wave + 1,
        running: false,
        round: 0,
        agreeing: false,
      };
      const said: WavesEngineOutput[] = rank === 0 ? [{ type: "waveComplete", wave }] : [];
      // A request that came between the agreement and now begins the next wave.
      if (engine.requests.length === 0) return [rested, said];
      const [again, more] = run(rested, release, true);
      return [again, [...said, ...more]];
    }
    case "paused":
      return [{
        ...engine,
        paused: true,
        running: false,
        agreeing: false,
        round: 0,
        requests: input.drop ? [] : engine.requests,
      }, []];
    case "resumed": {
      const resumed = { ...engine, paused: false };
      return input.busy ? run(resumed, release) : [resumed, []];
    }
  }
}

function added(
  engine: WavesEngine,
  { request, wave }: WavesEngineInput & { type: "add" },
  release: WavesRelease,
): Step {
  const held = { ...engine, requests: [...engine.requests, request] };
  if (wave > engine.wave) {
    const adopted = { ...held, wave, round: 0, agreeing: false };
    return engine.running || engine.paused ? [adopted, []] : run(adopted, release);
  }
  if (engine.running || engine.paused) return [held, []];
  // Its front-end believes in a wave that is over: the others must be woken too.
  return run(held, release, wave < engine.wave);
}

function run(engine: WavesEngine, release: WavesRelease, tell = false): Step {
  const { wave, rank } = engine;
  const says = tell || (release.saysWhenItRuns && rank === 0);
  return [{ ...engine, running: true }, says ? [{ type: "startWave", wave }] : []];
}
