/** One launched process: an engine, or a launcher of several ranks that live and die with it. */
import { assign, setup } from "xstate";
import { type Chart, effect, type Output, tell } from "../kernel/mod.ts";
import { backOffMs, mayRestart, NO_RESTARTS, type RestartPolicy } from "../planning/mod.ts";
import type { Launch } from "./configuration.ts";
import type { Spawn, StopProcess } from "./effects.ts";

export interface ProcessInput extends Launch {
  readonly stopMs: number;
  /** 0: it may be silent for ever. */
  readonly progressMs: number;
}

export interface ProcessContext extends ProcessInput {
  readonly code: number | null;
  readonly signal: string | null;
  readonly endpoints: Readonly<Record<string, string>>;
  /** Times in a row that it was started again. */
  readonly restarted: number;
}

export type ProcessEvent =
  /** Go: every address is known. */
  | { type: "launch"; endpoints: Readonly<Record<string, string>> }
  | { type: "spawned"; pid: number }
  | { type: "spawnFailed"; text: string }
  /** It wrote something since the last time; at most once per quarter of the limit. */
  | { type: "progressed" }
  | {
    type: "exited";
    code: number | null;
    signal: string | null;
    tail?: readonly string[];
  }
  /** Another launch runs these ranks now: its end is none of theirs. */
  | { type: "superseded"; ranks: readonly number[] }
  | { type: "stop" }
  | { type: "stopAnswered" }
  | { type: "keeperLost"; text: string };

/** What an end by itself leads to. */
const EXITED = [
  { guard: "mayRestart", target: "#process.resting", actions: ["noteExit", "tellRanksOfRestart"] },
  { target: "#process.ended", actions: ["noteExit", "tellRanks"] },
] as const;

const policyOf = ({ restarts }: ProcessContext): RestartPolicy => restarts ?? NO_RESTARTS;

const fill = (argument: string, endpoints: Readonly<Record<string, string>>): string =>
  argument.replace(/\{([\w.]+)\}/g, (whole, name: string) => endpoints[name] ?? whole);

export const process: Chart<ProcessContext, ProcessEvent> = setup({
  types: {} as { context: ProcessContext; events: ProcessEvent; input: ProcessInput },
  delays: {
    progressDeadline: ({ context }) => context.progressMs,
    backOff: ({ context }) => backOffMs(policyOf(context), context.restarted),
    calm: ({ context }) => policyOf(context).calmMs,
  },
  guards: {
    watched: ({ context }) => context.progressMs > 0,
    mayRestart: ({ context }) => mayRestart(policyOf(context), context.restarted),
    wasRestarted: ({ context }) => context.restarted > 0,
  },
  actions: {
    noteEndpoints: assign({
      endpoints: ({ event }) => (event as ProcessEvent & { type: "launch" }).endpoints,
    }),
    spawn: ({ context }) => {
      const { endpoints } = context;
      return effect<Spawn>({
        type: "process.spawn",
        argv: context.argv.map((a) => fill(a, endpoints)),
        env: Object.fromEntries(
          Object.entries(context.env).map(([k, v]) => [k, fill(v, endpoints)]),
        ),
        cwd: context.cwd,
        inherit: context.inherit,
        ...(context.output === undefined ? {} : { output: context.output }),
        progressEveryMs: context.progressMs / 4,
      });
    },
    terminate: ({ context }) =>
      effect<StopProcess>({ type: "process.stop", graceMs: context.stopMs }),
    noteExit: assign(({ event }) => {
      const { code, signal } = event as ProcessEvent & { type: "exited" };
      return { code, signal };
    }),
    tellRanks: ({ context, event }): Output[] => {
      const { code = null, signal = null } = event as { code?: number; signal?: string };
      return context.ranks.map((r) => tell(`rank/${r}/engine`, { type: "exited", code, signal }));
    },
    /** They were told to end. */
    tellRanksOfStop: ({ context, event }): Output[] => {
      const { code, signal } = event as ProcessEvent & { type: "exited" };
      return context.ranks.map((r) =>
        tell(`rank/${r}/engine`, { type: "exited", code, signal, asked: true })
      );
    },
    /** They will never say HELLO. */
    tellRanksOfNoStart: ({ context, event }): Output[] => {
      const { text } = event as ProcessEvent & { type: "spawnFailed" };
      return context.ranks.map((r) =>
        tell(`rank/${r}/engine`, { type: "exited", code: null, signal: null, text })
      );
    },
    /** They will say HELLO again. A rank that served already has left its group for good, and says so. */
    tellRanksOfRestart: ({ context, event }): Output[] => {
      const { code, signal } = event as ProcessEvent & { type: "exited" };
      return context.ranks.map((r) =>
        tell(`rank/${r}/engine`, { type: "exited", code, signal, restarting: true })
      );
    },
    forgetRanks: assign({
      ranks: ({ context, event }) => {
        const taken = (event as ProcessEvent & { type: "superseded" }).ranks;
        return context.ranks.filter((rank) => !taken.includes(rank));
      },
    }),
    forgetExit: assign({ code: null, signal: null }),
    countRestart: assign({ restarted: ({ context }) => context.restarted + 1 }),
    forgetRestarts: assign({ restarted: 0 }),
    sayFailed: ({ event }) =>
      tell("startup", {
        type: "launchFailed",
        text: (event as ProcessEvent & { type: "spawnFailed" }).text,
      }),
    saySilent: () => tell("startup", { type: "launchSilent" }),
    sayGone: () => tell("launcher", { type: "processGone" }),
  },
}).createMachine({
  id: "process",
  context: ({ input }) => ({
    ...input,
    code: null,
    signal: null,
    endpoints: {},
    restarted: 0,
  }),
  initial: "planned",
  on: { superseded: { actions: "forgetRanks" } },
  states: {
    planned: {
      on: {
        launch: { target: "spawning", actions: ["noteEndpoints", "spawn"] },
        stop: "ended",
      },
    },
    spawning: {
      on: {
        spawned: "running",
        spawnFailed: { target: "ended", actions: ["sayFailed", "tellRanksOfNoStart"] },
        exited: EXITED,
        stop: "stopping",
        keeperLost: { target: "ended", actions: "tellRanks" },
      },
    },
    running: {
      type: "parallel",
      on: {
        exited: EXITED,
        stop: "stopping",
        keeperLost: { target: "ended", actions: "tellRanks" },
        progressed: {},
      },
      states: {
        output: {
          initial: "deciding",
          states: {
            deciding: { always: [{ guard: "watched", target: "watched" }, { target: "trusted" }] },
            trusted: {},
            watched: {
              meta: { timers: { progressDeadline: "restart" } },
              after: { progressDeadline: { target: "silent", actions: "saySilent" } },
              on: { progressed: { target: "watched", reenter: true } },
            },
            silent: { on: { progressed: "watched" } },
          },
        },
        /** A launch that was started again has to prove itself before that is forgotten. */
        record: {
          initial: "deciding",
          states: {
            deciding: {
              always: [{ guard: "wasRestarted", target: "proving" }, { target: "clean" }],
            },
            proving: {
              meta: { timers: { calm: "restart" } },
              after: { calm: { target: "clean", actions: "forgetRestarts" } },
            },
            clean: {},
          },
        },
      },
    },
    /** It ended by itself and waits to be started again. */
    resting: {
      meta: { timers: { backOff: "deadline" } },
      after: { backOff: { target: "spawning", actions: ["countRestart", "spawn"] } },
      on: {
        stop: "ended",
        keeperLost: { target: "ended", actions: "tellRanks" },
        progressed: {},
        exited: {},
      },
    },
    stopping: {
      entry: "terminate",
      on: {
        spawned: { actions: "terminate" },
        spawnFailed: "ended",
        exited: { target: "ended", actions: ["noteExit", "tellRanksOfStop"] },
        keeperLost: { target: "ended", actions: "tellRanks" },
        stop: {},
        stopAnswered: {},
        progressed: {},
      },
    },
    ended: {
      entry: "sayGone",
      on: {
        // All engines are started anew.
        launch: { target: "spawning", actions: ["noteEndpoints", "forgetExit", "spawn"] },
        // Its end may be seen before the answer to its launch.
        spawned: {},
        spawnFailed: {},
        stop: {},
        stopAnswered: {},
        exited: {},
        keeperLost: {},
        progressed: {},
      },
    },
  },
});
