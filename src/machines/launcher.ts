/**
 * All launched processes together: the keeper that owns them, when they may start, and when the last one is gone.
 * Nothing is spawned before the keeper's place is in the journal and the keeper has answered.
 */
import { assign, setup } from "xstate";
import { type Chart, effect, hold, type Output, release, start, tell } from "../kernel/mod.ts";
import type { Launch } from "./configuration.ts";
import type { Keeper, KeeperPlace, PlaceKeeper, ProcessIdentity } from "./effects.ts";

export interface LauncherInput {
  readonly launches: readonly string[];
  readonly leaseMs: number;
  /** The keeper hosts more than processes, so that it is hired before anything may start, and also when nothing is to. */
  readonly hostsStores?: boolean;
}

export interface LauncherContext extends LauncherInput {
  readonly endpoints: Readonly<Record<string, string>>;
  readonly place: KeeperPlace | null;
  /** Launches whose process has not ended. */
  readonly left: number;
  /** What is launched once everything has ended: see `recycle`. */
  readonly next: Relaunch | null;
}

/** All processes anew: these launches again, and new ones in place of the others. */
export interface Relaunch {
  readonly again: readonly string[];
  readonly add: readonly (Launch & { stopMs: number; progressMs: number })[];
}

export type LauncherEvent =
  | { type: "open"; endpoints: Readonly<Record<string, string>> }
  | { type: "keeperPlaced"; place: KeeperPlace }
  | { type: "keeperUp"; identity: ProcessIdentity }
  | { type: "keeperLost"; text: string }
  /** The coordinator came back after a crash. */
  | { type: "resumed" }
  | { type: "processGone"; from: string }
  /** More processes, for ranks that join. */
  | { type: "add"; launches: readonly (Launch & { stopMs: number; progressMs: number })[] }
  /** End everything, and wait to be opened again. */
  | { type: "recycle"; next: Relaunch }
  | { type: "stop" };

export const processId = (launch: string): string => `process/${launch}`;

const keeperOf = (context: LauncherContext, identity: ProcessIdentity | null): Keeper => ({
  type: "keeper",
  place: context.place!,
  leaseMs: context.leaseMs,
  identity,
});

export const launcher: Chart<LauncherContext, LauncherEvent> = setup({
  types: {} as { context: LauncherContext; events: LauncherEvent; input: LauncherInput },
  guards: {
    hostsStores: ({ context }) => context.hostsStores === true,
    nothingToLaunch: ({ context }) => context.launches.length === 0,
    noneLeft: ({ context }) => context.left === 0,
  },
  actions: {
    noteEndpoints: assign({
      endpoints: ({ event }) => (event as LauncherEvent & { type: "open" }).endpoints,
    }),
    placeKeeper: () => effect<PlaceKeeper>({ type: "keeper.place" }),
    notePlace: assign({
      place: ({ event }) => (event as LauncherEvent & { type: "keeperPlaced" }).place,
    }),
    hireKeeper: ({ context }) => hold<Keeper>("keeper", keeperOf(context, null)),
    /** From now on it must be this one: another at its place is somebody else. */
    knowKeeper: ({ context, event }) =>
      hold<Keeper>(
        "keeper",
        keeperOf(context, (event as LauncherEvent & { type: "keeperUp" }).identity),
      ),
    launchAll: ({ context }): Output[] =>
      context.launches.map((id) =>
        tell(processId(id), { type: "launch", endpoints: context.endpoints })
      ),
    addLaunches: assign(({ context, event }) => {
      const { launches } = event as LauncherEvent & { type: "add" };
      return {
        launches: [...context.launches, ...launches.map((l) => l.id)],
        left: context.left + launches.length,
      };
    }),
    /** A process that leaves may still be ending while the next one of its rank starts. */
    supersede: ({ context, event }): Output[] => {
      const { launches } = event as LauncherEvent & { type: "add" };
      const ranks = launches.flatMap((l) => l.ranks);
      return context.launches.map((id) => tell(processId(id), { type: "superseded", ranks }));
    },
    plantAdded: ({ event }): Output[] =>
      (event as LauncherEvent & { type: "add" }).launches.map((l) =>
        start(processId(l.id), "process", l as never)
      ),
    launchAdded: ({ context, event }): Output[] =>
      (event as LauncherEvent & { type: "add" }).launches.map((l) =>
        tell(processId(l.id), { type: "launch", endpoints: context.endpoints })
      ),
    noteNext: assign({ next: ({ event }) => (event as LauncherEvent & { type: "recycle" }).next }),
    takeNext: assign(({ context }) => {
      const { again, add } = context.next!;
      const launches = [...again, ...add.map((l) => l.id)];
      return { launches, left: launches.length };
    }),
    plantNext: ({ context }): Output[] =>
      context.next!.add.map((l) => start(processId(l.id), "process", l as never)),
    sayHired: () => tell("startup", { type: "keeperHired" }),
    sayVacant: () => tell("startup", { type: "launchesGone" }),
    stopAll: ({ context }): Output[] =>
      context.launches.map((id) => tell(processId(id), { type: "stop" })),
    tellLoss: ({ context, event }): Output[] => {
      const { text } = event as LauncherEvent & { type: "keeperLost" };
      return [
        ...context.launches.map((id) => tell(processId(id), { type: "keeperLost", text })),
        tell("startup", { type: "keeperLost", text }),
      ];
    },
    countGone: assign({ left: ({ context }) => context.left - 1 }),
    dropKeeper: () => release("keeper"),
    sayGone: () => tell("startup", { type: "processesGone" }),
  },
}).createMachine({
  id: "launcher",
  context: ({ input }) => ({
    ...input,
    endpoints: {},
    place: null,
    left: input.launches.length,
    next: null,
  }),
  initial: "waiting",
  on: { processGone: { actions: "countGone" }, resumed: {} },
  states: {
    waiting: {
      always: { guard: "hostsStores", target: "placing" },
      on: {
        open: [
          { guard: "nothingToLaunch", target: "idle", actions: "noteEndpoints" },
          { target: "placing", actions: "noteEndpoints" },
        ],
        stop: "stopping",
      },
    },
    /** Every engine is started by somebody else. */
    idle: {
      on: {
        stop: "stopping",
        add: { target: "placing", actions: ["supersede", "addLaunches", "plantAdded"] },
        // Engines of others: there is nothing to end, and later nothing to launch.
        recycle: { actions: "sayVacant" },
        open: { actions: "noteEndpoints" },
      },
    },
    placing: {
      entry: "placeKeeper",
      on: {
        keeperPlaced: { target: "hiring", actions: ["notePlace", "hireKeeper"] },
        stop: "stopping",
      },
    },
    hiring: {
      on: {
        keeperUp: [
          { guard: "hostsStores", target: "hired", actions: ["knowKeeper", "sayHired"] },
          { target: "running", actions: ["knowKeeper", "launchAll"] },
        ],
        keeperLost: { target: "bereft", actions: "tellLoss" },
        stop: "stopping",
      },
    },
    /** The keeper answers, and nothing may be launched yet. */
    hired: {
      on: {
        open: { target: "running", actions: ["noteEndpoints", "launchAll"] },
        keeperUp: {},
        keeperLost: { target: "bereft", actions: "tellLoss" },
        stop: "stopping",
      },
    },
    running: {
      on: {
        resumed: "returning",
        keeperUp: {},
        keeperLost: { target: "bereft", actions: "tellLoss" },
        add: { actions: ["supersede", "addLaunches", "plantAdded", "launchAdded"] },
        recycle: { target: "recycling", actions: "noteNext" },
        stop: "stopping",
      },
    },
    /** Everything ends, to be launched anew. */
    recycling: {
      entry: "stopAll",
      on: {
        keeperUp: {},
        keeperLost: { target: "bereft", actions: "tellLoss" },
        stop: "stopping",
      },
      always: { guard: "noneLeft", target: "vacant" },
    },
    vacant: {
      entry: "sayVacant",
      on: {
        open: {
          target: "running",
          actions: ["noteEndpoints", "takeNext", "plantNext", "launchAll"],
        },
        keeperUp: {},
        keeperLost: { target: "bereft", actions: "tellLoss" },
        stop: "stopping",
      },
    },
    /** The coordinator came back: the same keeper has to answer. */
    returning: {
      on: {
        keeperUp: "running",
        keeperLost: { target: "bereft", actions: "tellLoss" },
        add: { actions: ["supersede", "addLaunches", "plantAdded", "launchAdded"] },
        stop: "stopping",
      },
    },
    /** The keeper is gone, and with it every process. */
    bereft: { on: { stop: "stopping", keeperUp: {}, keeperLost: {} } },
    stopping: {
      entry: "stopAll",
      on: { stop: {}, keeperPlaced: {}, keeperUp: {}, keeperLost: { actions: "tellLoss" } },
      always: { guard: "noneLeft", target: "gone" },
    },
    gone: {
      entry: ["dropKeeper", "sayGone"],
      on: {
        stop: { actions: "sayGone" },
        // Asked for before everything was stopped; nobody is hired any more.
        keeperPlaced: {},
        keeperUp: {},
        keeperLost: {},
      },
    },
  },
});
