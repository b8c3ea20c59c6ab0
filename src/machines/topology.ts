/**
 * What one rank's front-end believes of the serving topology, between and during operations: the size, the control store, the
 * last epoch that it acted on. It takes one operation at a time, keeps stores alive that peers may still poll, and
 * hands a notification of its engine to the operation that caused it.
 *
 * steady --prepare--> scaling --ended--> steady | unknown
 */
import { assign, setup } from "xstate";
import { type Chart, hold, type Output, release, start, tell } from "../kernel/mod.ts";
import type { Bootstrap, KeepStore, StoreAddress } from "./effects/scaling.ts";
import type { HandshakeSettings, ScalingInput, ScalingLimits, ScalingOutput } from "./scaling.ts";
import { checkTarget, type Expertise } from "./scaling/validation.ts";

export interface TopologyInput extends Expertise {
  readonly size: number;
  /** Rank 0: publishes, and hosts the stores. */
  readonly leader: boolean;
  readonly masterIp: string;
  /** The store of the topology that serves; null without elastic expert parallelism. */
  readonly control: StoreAddress | null;
  readonly limits: ScalingLimits;
  readonly handshake: Omit<HandshakeSettings, "maxSize"> | null;
  /** The last epoch that this rank acted on; empty at the start of a cluster. */
  readonly epoch?: string;
  /** The control store's server is ours to keep alive. */
  readonly hostsControl?: boolean;
}

export interface TopologyContext extends Omit<TopologyInput, "epoch"> {
  readonly epoch: string;
  /** The operation whose part runs here. */
  readonly operation: string | null;
  /** The epoch of the store server in use, and of those that are kept for peers that still poll them. */
  readonly stores: readonly KeptStore[];
  /** The operation that the engine's next notification is about. */
  readonly switching: string | null;
  /** Why it does not know in which topology it serves. */
  readonly doubt: string | null;
  /** How its engine was lost; null while it is there. */
  readonly engineLost: string | null;
}

export interface KeptStore {
  readonly epoch: string;
  readonly address: StoreAddress;
  /** Retired before the running operation began: released when that operation ends here. */
  readonly retired: boolean;
}

export type TopologyEvent =
  | {
    type: "prepare";
    operation: string;
    target: number;
    remains: boolean;
    report: string;
    /** Every rank knows the operation by this name; not so where the other ranks were told separately, as the original's. */
    shared: boolean;
    /** Nobody will say `commit`; by default so where the name is not shared. */
    autoCommit?: boolean;
    prepareMs?: number;
    from?: string;
  }
  | { type: "commit"; operation: string }
  | { type: "abort"; operation: string; text: string }
  | { type: "storeOpened"; epoch: string; address: StoreAddress; from: string }
  | { type: "engineSwitching"; operation: string; from: string }
  | {
    type: "topologyDecided";
    size: number;
    epoch: string;
    bootstrap: Bootstrap;
    redundancy: number;
    remains: boolean;
    from: string;
  }
  | { type: "ended"; chart: string; from: string; output: ScalingOutput }
  /** The store of the topology that starts serves, and these are the addresses that ranks are told. */
  | {
    type: "controlServing";
    address: StoreAddress;
    addresses: Addresses;
    size?: number;
    redundant?: number;
  }
  /** Of the own engine. */
  | { type: "notified"; notification: "reconfigureFinished" | "shutdownComplete" }
  | { type: "engineLost"; text: string }
  | { type: "engineRestarted" }
  /** An operator knows which topology serves. */
  | { type: "settled"; size: number };

type Args = { context: TopologyContext; event: TopologyEvent };
type Of<T extends TopologyEvent["type"]> = TopologyEvent & { type: T };

type Addresses = Omit<HandshakeSettings, "bind" | "form" | "maxSize">;

/** The instance of a rank's part in an operation, beside its topology. */
const part = (operation: string): string => `../scaling/${operation}`;

const refusalOf = (context: TopologyContext, event: TopologyEvent): string | null => {
  const { target } = event as Of<"prepare">;
  if (context.engineLost !== null) {
    return `this rank has no engine to scale with: ${context.engineLost}`;
  }
  if (context.control === null) {
    return "External Elastic EP requires a runtime coordination store port.";
  }
  const check = checkTarget(context, context.size, target);
  return check.ok ? null : check.text;
};

const refused = (event: TopologyEvent, text: string): Output[] => {
  const { report, operation } = event as Of<"prepare">;
  return report === "" ? [] : [tell(report, {
    type: "rankEnded",
    operation,
    outcome: "failed",
    cause: { code: "refused", text },
    engineToRestart: false,
    topology: null,
  })];
};

const server = ({ address, epoch }: KeptStore): KeepStore => ({
  type: "store.server",
  at: address,
  epoch,
});

const always = {
  notified: [{ guard: "isClaimed", actions: ["passNotification", "forgetSwitching"] }, {}],
  engineRestarted: { actions: ["forgetSwitching", "forgetLoss"] },
  storeOpened: { actions: ["noteStore", "keepStores"] },
  controlServing: { actions: ["releaseStores", "noteControl", "keepStores"] },
  engineSwitching: { actions: "noteSwitching" },
} as const;

export const topology: Chart<TopologyContext, TopologyEvent> = setup({
  types: {} as { context: TopologyContext; events: TopologyEvent; input: TopologyInput },
  guards: {
    isPossible: ({ context, event }: Args) => refusalOf(context, event) === null,
    isRunning: ({ context, event }: Args) =>
      (event as Of<"commit">).operation === context.operation,
    isClaimed: ({ context }: Args) => context.switching !== null,
    stranded: ({ event }: Args) => (event as Of<"ended">).output?.outcome === "stranded",
    ofPart: ({ event }: Args) => (event as Of<"ended">).chart === "scaling",
  },
  actions: {
    startPart: ({ context, event }: Args) => {
      const e = event as Of<"prepare">;
      const check = checkTarget(context, context.size, e.target);
      const input: ScalingInput = {
        operation: e.operation,
        report: e.report,
        leader: context.leader,
        remains: e.remains,
        oldSize: context.size,
        target: e.target,
        control: context.control!,
        masterIp: context.masterIp,
        redundancy: check.ok ? check.redundancy : 0,
        previous: context.epoch,
        limits: e.prepareMs === undefined
          ? context.limits
          : { ...context.limits, prepareMs: e.prepareMs },
        shared: e.shared,
        autoCommit: e.autoCommit ?? !e.shared,
        handshake: context.handshake === null
          ? null
          : { ...context.handshake, maxSize: context.maxSize },
      };
      return start(part(e.operation), "scaling", input as never);
    },
    passCommit: ({ context }: Args) => tell(part(context.operation!), { type: "commit" }),
    passAbort: ({ context, event }: Args) =>
      tell(part(context.operation!), { type: "abort", text: (event as Of<"abort">).text }),
    passNotification: ({ context, event }: Args) =>
      context.switching === context.operation
        ? tell(part(context.switching!), { type: (event as Of<"notified">).notification })
        : [],
    passEngineLost: ({ context, event }: Args) =>
      tell(part(context.operation!), {
        type: "engineLost",
        text: (event as Of<"engineLost">).text,
      }),
    refuseTarget: ({ context, event }: Args) =>
      refused(event, refusalOf(context, event) ?? "refused"),
    refuseRival: ({ context, event }: Args) =>
      refused(event, `operation ${context.operation} is running on this rank`),
    refuseUnknown: ({ context, event }: Args) =>
      refused(event, `this rank does not know in which topology it serves: ${context.doubt}`),
    keepStores: ({ context }: Args) =>
      context.stores.map((store) => hold(`store/${store.epoch}`, server(store))),
    releaseStores: ({ context }: Args) => context.stores.map((s) => release(`store/${s.epoch}`)),
    releaseRetired: ({ context }: Args) =>
      context.stores.filter((s) => s.retired).map((s) => release(`store/${s.epoch}`)),
    tellWaves: ({ context, event }: Args) =>
      context.leader
        ? tell("waves", { type: "scaled", size: (event as Of<"topologyDecided">).size })
        : [],

    noteOperation: assign({ operation: ({ event }: Args) => (event as Of<"prepare">).operation }),
    forgetOperation: assign({ operation: null }),
    noteSwitching: assign({
      switching: ({ event }: Args) => (event as Of<"engineSwitching">).operation,
    }),
    forgetSwitching: assign({ switching: null }),
    noteStore: assign(({ context, event }: Args) => {
      const { epoch, address } = event as Of<"storeOpened">;
      // Those of earlier operations are of use until everybody has left those operations, which ends with this one.
      const earlier = context.stores.map((s) => ({
        ...s,
        retired: s.address.port !== context.control?.port,
      }));
      return { stores: [...earlier, { epoch, address, retired: false }] };
    }),
    /** Said at the start, and again when the whole group has started anew: then nothing of before counts. */
    noteControl: assign(({ context, event }: Args) => {
      const { address, addresses, size, redundant } = event as Of<"controlServing">;
      const epoch = context.stores.length === 0 ? "" : `of-port-${address.port}`;
      return {
        control: address,
        size: size ?? context.size,
        redundant: redundant ?? context.redundant,
        handshake: context.handshake === null ? null : { ...context.handshake, ...addresses },
        stores: context.hostsControl === true ? [{ epoch, address, retired: false }] : [],
        switching: null,
        doubt: null,
        engineLost: null,
      };
    }),
    noteLoss: assign({ engineLost: ({ event }: Args) => (event as Of<"engineLost">).text }),
    forgetLoss: assign({ engineLost: null }),
    dropRetired: assign({
      stores: ({ context }: Args) => context.stores.filter((s) => !s.retired),
    }),
    noteEpoch: assign({
      epoch: ({ context, event }: Args) => (event as Of<"ended">).output.epoch || context.epoch,
    }),
    adopt: assign(({ event }: Args) => {
      const { size, epoch, bootstrap, redundancy, remains } = event as Of<"topologyDecided">;
      return {
        size,
        epoch,
        redundant: redundancy,
        masterIp: bootstrap.masterIp,
        // A rank that left has no part in the new topology.
        control: remains ? { host: bootstrap.masterIp, port: bootstrap.storePort } : null,
      };
    }),
    noteDoubt: assign({
      doubt: ({ event }: Args) => (event as Of<"ended">).output.cause?.text ?? "",
    }),
    noteSettled: assign({
      size: ({ event }: Args) => (event as Of<"settled">).size,
      doubt: null,
    }),
  },
}).createMachine({
  id: "topology",
  context: ({ input }: { input: TopologyInput }) => ({
    ...input,
    epoch: input.epoch ?? "",
    operation: null,
    stores: input.hostsControl === true && input.control !== null
      ? [{ epoch: input.epoch ?? "", address: input.control, retired: false }]
      : [],
    switching: null,
    doubt: null,
    engineLost: null,
  }),
  initial: "steady",
  entry: "keepStores",
  on: always,
  states: {
    steady: {
      on: {
        prepare: [
          { guard: "isPossible", target: "scaling", actions: ["noteOperation", "startPart"] },
          { actions: "refuseTarget" },
        ],
        commit: {},
        abort: {},
        ended: {},
        engineLost: { actions: "noteLoss" },
        settled: {},
      },
    },
    scaling: {
      on: {
        // Asked again by a caller that was lost: it is running.
        prepare: [{ guard: "isRunning" }, { actions: "refuseRival" }],
        commit: [{ guard: "isRunning", actions: "passCommit" }, {}],
        abort: [{ guard: "isRunning", actions: "passAbort" }, {}],
        topologyDecided: { actions: ["adopt", "tellWaves"] },
        engineLost: { actions: ["noteLoss", "passEngineLost"] },
        ended: [
          {
            guard: "stranded",
            target: "unknown",
            actions: ["noteEpoch", "noteDoubt", "forgetOperation"],
          },
          {
            guard: "ofPart",
            target: "steady",
            actions: ["noteEpoch", "releaseRetired", "dropRetired", "forgetOperation"],
          },
          {},
        ],
      },
    },
    /** The store that knows how its last operation ended is gone. */
    unknown: {
      on: {
        prepare: { actions: "refuseUnknown" },
        settled: { target: "steady", actions: "noteSettled" },
        controlServing: {
          target: "steady",
          actions: ["releaseStores", "noteControl", "keepStores"],
        },
        commit: {},
        abort: {},
        engineLost: { actions: "noteLoss" },
        ended: {},
      },
    },
  },
});
