/**
 * A front-end's side of the DP coordinator, pure (wire spec, 5.4 "front-end obligations" and load balancing): what it knows of
 * waves and loads, when it wakes the engines, and which engine it gives a request to.
 */
import type { EngineLoad } from "./load-table.ts";

export interface FrontEnd {
  readonly wave: number;
  /** It believes that engines run, so that nobody need be woken. */
  readonly running: boolean;
  /** Load by active index, as last published plus what this front-end has sent since. Empty before the first publish. */
  readonly loads: readonly EngineLoad[];
  /** Requests of this front-end that are under way, by active index. */
  readonly inFlight: readonly number[];
  /** Where the next scan for the least loaded engine begins. */
  readonly next: number;
  /** How many front-ends share the engines. */
  readonly clients: number;
}

export const frontEnd = (engines: number, clients = 1): FrontEnd => ({
  wave: 0,
  running: false,
  loads: [],
  inFlight: new Array(engines).fill(0),
  next: 0,
  clients,
});

/** Takes a publish. Counts stay as they were when it has none. `first` and `last` cut out this front-end's engines. */
export function heard(
  front: FrontEnd,
  publish: {
    readonly counts: readonly EngineLoad[] | null;
    readonly wave: number;
    readonly running: boolean;
  },
  first = 0,
): FrontEnd {
  const { wave, running, counts } = publish;
  const own = counts?.slice(first, first + front.inFlight.length);
  return { ...front, wave, running, loads: own ?? front.loads };
}

/** Another number of engines. */
export const resized = (front: FrontEnd, engines: number): FrontEnd => ({
  ...front,
  loads: front.loads.slice(0, engines),
  inFlight: Array.from({ length: engines }, (_, i) => front.inFlight[i] ?? 0),
  next: front.next % Math.max(1, engines),
});

/**
 * How loaded an engine is to this front-end: what it has there itself counts at least, waiting requests weigh more the fuller the
 * cache is.
 */
export function score(front: FrontEnd, engine: number): number {
  const own = front.clients * (front.inFlight[engine] ?? 0);
  const load = front.loads[engine];
  if (load === undefined) return own;
  const { waiting, running, kvCacheUsage = 0 } = load;
  const pressed = waiting > 0 ? waiting * 6 * Math.max(0, kvCacheUsage - 0.5) : 0;
  return Math.max(own, waiting + running) + pressed;
}

/** The least loaded engine: the first minimum from a start that moves on with each pick. Fair before any statistics. */
export function pick(front: FrontEnd): number {
  const engines = front.inFlight.length;
  let best = front.next % engines;
  for (let i = 1; i < engines; i++) {
    const engine = (front.next + i) % engines;
    if (score(front, engine) < score(front, best)) best = engine;
  }
  return best;
}

/** What sending a request comes to. */
export interface Sending {
  readonly front: FrontEnd;
  /** The wave to stamp the request with. */
  readonly wave: number;
  /** To be sent to the coordinator before the request is awaited. */
  readonly wake: { readonly exclude: number; readonly wave: number } | null;
}

/** Sends a request to an engine: the stamp, the wake-up when engines rest, and the load that it adds. */
export function send(front: FrontEnd, engine: number): Sending {
  const { wave, running, clients } = front;
  const loads = front.loads.map((load, i) =>
    i === engine ? { ...load, waiting: load.waiting + clients } : load
  );
  const inFlight = front.inFlight.map((n, i) => i === engine ? n + 1 : n);
  return {
    front: { ...front, running: true, loads, inFlight, next: (engine + 1) % inFlight.length },
    wave,
    wake: running ? null : { exclude: engine, wave },
  };
}

/**
 * The wake-up to send after a publish that says that engines rest although requests are under way: the first one may have been lost on
 * its way, or discarded by engines that were paused. Repeats are harmless.
 */
export const wakeAgain = (front: FrontEnd): { exclude: null; wave: number } | null =>
  front.running || front.inFlight.every((n) => n === 0)
    ? null
    : { exclude: null, wave: front.wave };

/** A request of this front-end is done. */
export const finished = (front: FrontEnd, engine: number): FrontEnd => ({
  ...front,
  inFlight: front.inFlight.map((n, i) => i === engine ? Math.max(0, n - 1) : n),
});
