/**
 * The DP coordinator alone: whatever engines and front-ends may tell it, at any moment and in any order, also what is out of date or
 * cannot be true. Engines that really run and rest are in `waves.ts`; here is said what the coordinator must make of what it hears.
 */
import { defineModel, type Happening, type Model, type World } from "../src/checker/mod.ts";
import type { Json, KernelEvent } from "../src/kernel/mod.ts";
import { waves as coordinator, type WavesInput } from "../src/machines/mod.ts";
import { bystander, heard, listener } from "./bystander.ts";

export interface DpCoordinatorOptions {
  readonly engines?: number;
  readonly rule?: WavesInput["rule"];
  /** Whether waves are coordinated at all. Default true. */
  readonly coordinates?: boolean;
  /** How many waves engines tell of. Default 2. */
  readonly waves?: number;
}

const ID = "waves";
/** No engine is as far ahead as this. */
const IMPLAUSIBLE = 5000;

interface Belief {
  readonly bound: boolean;
  readonly subscribed: number;
  /** All engines have subscribed, and were told to go on. */
  readonly serving: boolean;
  readonly wave: number;
  readonly running: boolean;
  /** It passed on a wake-up that no engine has confirmed. */
  readonly called: boolean;
  /** Something was heard from engines. */
  readonly heard: boolean;
  readonly early: { readonly exclude: number | null } | null;
  /** How many engines there are. */
  readonly size: number;
  /** How many have to subscribe before any may go on. */
  readonly awaited: number;
}

const begin = (size: number): Belief => ({
  bound: false,
  subscribed: 0,
  serving: false,
  wave: 0,
  running: false,
  called: false,
  heard: false,
  early: null,
  size,
  awaited: size,
});

type Saying = Readonly<Record<string, Json>> & { readonly type: string };

interface Meaning {
  readonly belief: Belief;
  /** What it has to say then, in this order. */
  readonly says?: readonly Saying[];
}

/** What the coordinator makes of what it hears. */
function meaningOf(b: Belief, event: KernelEvent, input: Required<DpCoordinatorOptions>): Meaning {
  const { rule, coordinates } = input;
  const publish = ({ wave, running }: Belief): Saying => ({
    type: "waves.publish",
    wave,
    running,
  });
  const start = (wave: number, exclude: number | null = null): Saying => ({
    type: "waves.start",
    wave,
    exclude,
  });
  const told = event["wave"] as number;
  const believable = coordinates && told >= 0 && (!b.heard || told - b.wave < IMPLAUSIBLE);
  switch (event.type) {
    case "bound":
      return b.bound ? { belief: b } : {
        belief: { ...b, bound: true },
        says: [{ type: "bound", to: "startup" }],
      };
    case "bindFailed":
      return { belief: b, says: [{ type: "bindFailed", to: "startup" }] };
    case "subscribed": {
      if (b.serving) {
        return {
          belief: b,
          says: [{ type: "waves.ready" }, ...(b.running ? [start(b.wave)] : [])],
        };
      }
      const subscribed = b.subscribed + 1;
      if (subscribed < b.awaited) return { belief: { ...b, subscribed } };
      return {
        belief: { ...b, subscribed, serving: true, called: b.early !== null, early: null },
        says: [
          { type: "waves.ready" },
          ...(b.early === null ? [] : [start(b.wave, b.early.exclude)]),
        ],
      };
    }
    case "wake": {
      if (!coordinates || b.running) return { belief: b };
      const exclude = event["exclude"] as number;
      // Who called first may be left out; after a second caller nobody may.
      if (!b.serving) {
        return { belief: { ...b, early: { exclude: b.early === null ? exclude : null } } };
      }
      const passed = start(b.wave, told < b.wave ? null : exclude);
      if (rule === "evidence") return { belief: { ...b, called: true }, says: [passed] };
      const running = { ...b, running: true };
      return { belief: running, says: [passed, publish(running)] };
    }
    case "startWave": {
      const news = b.serving && believable && (b.running ? told > b.wave : told >= b.wave);
      if (!news) return { belief: b };
      const next = { ...b, wave: told, running: true, called: false, heard: true };
      return { belief: next, says: [start(told), publish(next)] };
    }
    case "waveComplete": {
      if (!b.serving || !believable || told < b.wave) return { belief: b };
      const next = { ...b, wave: told + 1, running: false, called: false, heard: true };
      return { belief: next, says: [publish(next)] };
    }
    case "scaled":
      return { belief: { ...b, size: event["size"] as number } };
    // The wave goes on: engines that begin adopt it.
    case "regrouped": {
      const size = event["size"] as number;
      return {
        belief: {
          ...b,
          size,
          awaited: size,
          serving: false,
          running: false,
          called: false,
          subscribed: 0,
          early: null,
        },
      };
    }
    case "frontSubscribed":
    case "resumed":
      return b.serving ? { belief: b, says: [publish(b)] } : { belief: b };
    default:
      // Reminders: of a wave that runs, and once of a call.
      return event.type.startsWith("xstate.after.reminder")
        ? { belief: { ...b, called: false }, says: [start(b.wave)] }
        : { belief: b };
  }
}

interface Memory {
  readonly belief: Belief;
  readonly owed: readonly Saying[];
  readonly wrong: string | null;
}

function remember(
  memory: Memory,
  happening: Happening,
  input: Required<DpCoordinatorOptions>,
): Memory {
  if (happening.kind === "took" && happening.instance === ID) {
    const { event, how } = happening;
    if (how === "failed" || how === "unexpected") {
      return { ...memory, wrong: `${event.type} ${how}` };
    }
    const { belief, says = [] } = meaningOf(memory.belief, event, input);
    return { ...memory, belief, owed: says };
  }
  const said: Saying | undefined = happening.kind === "effect" && happening.instance === ID
    ? happening.effect as Saying
    : happening.kind === "took" && happening.instance === "startup"
    ? { ...happening.event, to: "startup" } as unknown as Saying
    : undefined;
  if (said === undefined) return memory;
  const [first, ...rest] = memory.owed;
  const expected = first !== undefined &&
    Object.entries(first).every(([name, value]) => said[name] === value);
  return expected ? { ...memory, owed: rest } : { ...memory, wrong: `says ${said.type}` };
}

/** The coordinator of some engines, and everything that it may be told. */
export function dpCoordinator(options: DpCoordinatorOptions = {}): Model {
  const full = { engines: 2, rule: "evidence", coordinates: true, waves: 2, ...options } as const;
  const { engines, rule, coordinates, waves } = full;
  const input: WavesInput = {
    sockets: { frontPublish: "f", backPublish: "b", backOutput: "o" },
    engines,
    coordinates,
    rule,
    remindMs: 5000,
  };
  const memory = (w: World): Memory => w.memory("history");
  const context = (w: World) => w.at(ID)!.context;
  const events = (w: World): KernelEvent[] => {
    const { wave, subscribed, engines: size } = context(w);
    // Engines tell of a limited number of waves, of earlier ones, and of one that cannot be.
    const tellable = Array.from({ length: waves }, (_, n) => n).concat(
      -1,
      memory(w).belief.heard ? [wave + IMPLAUSIBLE] : [],
    );
    return [
      { type: "bound", socket: ID, endpoints: {} },
      ...(w.in(ID, "binding") ? [] : [
        { type: "frontSubscribed" },
        ...(subscribed < size || w.in(ID, "serving") ? [{ type: "subscribed" }] : []),
        ...[0, 1].flatMap((exclude) =>
          [wave - 1, wave].map((wave) => ({ type: "wake", exclude, wave }))
        ),
        ...tellable.flatMap((wave) =>
          ["startWave", "waveComplete"].map((type) => ({ type, wave, engine: 0 }))
        ),
      ]),
      { type: "resumed" },
      { type: "bindFailed", socket: ID, text: "in use" },
      // A cluster scales when it has formed.
      ...(w.in(ID, "serving")
        ? [{ type: "scaled", size: size === engines ? engines + 1 : engines }]
        : []),
      ...(w.in(ID, "binding") ? [] : [{ type: "regrouped", size: engines }]),
    ];
  };
  return defineModel({
    name: `the DP coordinator of ${engines} engines, ${
      coordinates ? `${waves} waves (${rule})` : "without waves"
    }`,
    processes: {
      [ID]: { runs: coordinator, input: input as unknown as Json },
      startup: { runs: listener },
      others: bystander((w) => events(w).map((event) => [ID, event])),
    },
    effects: {
      ...heard,
      "waves.ready": () => [],
      "waves.start": () => [],
      "waves.publish": () => [],
    },
    monitors: {
      history: {
        initial: { belief: begin(engines), owed: [], wrong: null } as unknown as Json,
        step: (memory, h) => remember(memory as unknown as Memory, h, full) as unknown as Json,
      },
    },
    properties: {
      always: {
        "it serves when every engine has subscribed, and not before": (w) =>
          w.in(ID, "serving") === memory(w).belief.serving &&
          w.in(ID, "binding") !== memory(w).belief.bound,
        "it believes in the wave that engines told last, and that they run or rest as they said": (
          w,
        ) => {
          const { serving, wave, running, called, size } = memory(w).belief;
          if (!serving) return true;
          return context(w).engines === size && context(w).wave === wave &&
            w.in(ID, "serving.running") === running &&
            w.in(ID, "serving.paused.called") === (called && !running);
        },
        "what changes is published, and calls and reminders are passed on, at once": (w) =>
          memory(w).owed.length === 0 && memory(w).wrong === null,
        "a wave that runs, or a call that nobody confirmed, is reminded of": (w) => {
          const { running, called, serving } = memory(w).belief;
          return w.timers(ID).includes("reminder") === (serving && (running || called));
        },
      },
      sometimes: {
        "it serves": (w) => w.in(ID, "serving"),
        ...(coordinates ? { "engines run": (w: World) => w.in(ID, "serving.running") } : {}),
      },
    },
  });
}
