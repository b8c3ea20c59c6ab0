/** What must hold of a scaling operation, whatever goes wrong: what ranks say of its end, what the stores hold, what engines do. */
import type { Monitor, Properties, World } from "../src/checker/mod.ts";
import type { Json } from "../src/kernel/mod.ts";
import { CURRENT_EPOCH, decisionKey, errorKey, keyOf } from "../src/machines/scaling/store-view.ts";
import { engineKeys } from "../src/protocol/mod.ts";
import type { ScalingEngine } from "../src/peers/engine-scaling.ts";

export const OPERATION = "op";
export const CONTROL = 1000;
export const RECONFIG = 2000;
export const EPOCH: string = "e".repeat(32);
export const EARLIER: string = "f".repeat(32);

/** A store key as the model names it: the store's port before it. */
export const placeOf = (port: number, key: string): string => `${port}/${key}`;

/** A rank's part in the operation. */
export const partOf = (rank: number): string => `rank/${rank}/scaling/${OPERATION}`;

export interface ScalingSetting {
  readonly ranks: number;
  readonly target: number;
  readonly abort: boolean;
  /** Whether what each rank was told is remembered, too. */
  readonly closely: boolean;
  /** What rank 0 finds in its store: an epoch of before that has no end, or one that others may be committing. */
  readonly earlier?: "unfinished" | "committing" | undefined;
}

/** How a rank's part ended. */
interface End {
  readonly outcome: "completed" | "failed" | "stranded";
  readonly code: string | null;
  /** It had joined an epoch; and it says that there was none to join. */
  readonly joined: boolean;
  readonly missedEpoch: boolean;
  readonly engineToRestart: boolean;
}

const TOPOLOGY = /^rank\/(\d+)\/topology$/;

/** The ends of all ranks' parts, by rank. */
export const outcomes: Monitor = {
  initial: {},
  heeds: (h) =>
    h.kind === "took" && h.event.type === "ended" && h.event["chart"] === "scaling" &&
    TOPOLOGY.test(h.instance),
  step: (ends, h) => {
    if (h.kind !== "took") return ends;
    const rank = TOPOLOGY.exec(h.instance)![1]!;
    const { outcome, cause, engineToRestart, epoch } = h.event["output"] as unknown as {
      outcome: End["outcome"];
      cause: { code: string; text: string } | null;
      engineToRestart: boolean;
      epoch: string;
    };
    const end: End = {
      outcome,
      code: cause?.code ?? null,
      joined: epoch !== "",
      missedEpoch: cause?.text.includes("publish") ?? false,
      engineToRestart,
    };
    return { ...ends as object, [rank]: end as unknown as Json };
  },
};

/** How many epochs were drawn. */
export const draws: Monitor = {
  initial: 0,
  heeds: (h) => h.kind === "effect" && h.effect.type === "scaling.draw",
  step: (count) => (count as number) + 1,
};

/** What a rank was told that speaks against going on, by rank. */
interface Objections {
  readonly [rank: string]: { readonly cutOff: boolean; readonly objects: boolean };
}

export const objections: Monitor = {
  initial: {},
  step: (all, h) => {
    const rank = /^rank\/(\d+)\/scaling\//.exec("instance" in h ? h.instance : "")?.[1];
    if (rank === undefined || h.kind !== "took") return all;
    const { type } = h.event;
    const cutOff = type === "storeLost" && h.event["store"] === "control";
    const objects = ["abort", "engineLost", "storeLost", "errorSeen"].includes(type) ||
      type.startsWith("xstate.after.voteDeadline");
    const before = (all as unknown as Objections)[rank] ?? { cutOff: false, objects: false };
    return cutOff || objects
      ? {
        ...all as object,
        [rank]: { cutOff: before.cutOff || cutOff, objects: before.objects || objects },
      }
      : all;
  },
};

export const endOf = (w: World, rank: number): End | undefined => w.memory("outcomes")[rank];

export function scalingProperties(
  { ranks, target, abort, closely, earlier }: ScalingSetting,
): Properties {
  const old = Array.from({ length: ranks }, (_, r) => r);
  const all = Array.from({ length: target }, (_, r) => r);
  const ends = (w: World): End[] => Object.values(w.memory("outcomes"));
  const control = (w: World, key: string): string | undefined => w.get(placeOf(CONTROL, key));
  const reconfig = (w: World, key: string): string | undefined => w.get(placeOf(RECONFIG, key));
  const completed = (w: World): boolean => control(w, keyOf("completed", EPOCH, 0)) !== undefined;
  const decision = (w: World): string | undefined => control(w, decisionKey(EPOCH));
  const failed = (w: World): boolean => control(w, errorKey(EPOCH)) !== undefined;
  const voted = (w: World, r: number): boolean =>
    reconfig(w, keyOf("commit_ready", EPOCH, r)) !== undefined;
  const engine = (w: World, r: number): ScalingEngine =>
    (w.at("engines")!.value as Record<number, ScalingEngine>)[r]!;
  const ready = (w: World): boolean =>
    all.every((r) => reconfig(w, engineKeys.eepReady(r).key) !== undefined);
  const lost = (w: World): boolean => w.spent("losses") > 0;
  const touched = (w: World, r: number): boolean => {
    const { reconfiguration, size, gone, paused } = engine(w, r);
    // Of one that is gone its process's end tells.
    return !gone && (reconfiguration !== null || size !== ranks || paused);
  };
  /** What has to have happened before a rank may give this as the cause. */
  const grounds: Readonly<Record<string, (w: World) => boolean>> = {
    "aborted": (w) => abort || decision(w) === "abort",
    "another-active": () => true,
    "prepare-late": (w) => w.spent("deadlines") > 0,
    "vote-late": (w) => w.spent("deadlines") > 0,
    "outcome-late": (w) => w.spent("deadlines") > 0,
    "engine-late": (w) => w.spent("deadlines") > 0,
    "failed-elsewhere": failed,
    "store-failed": (w) => w.spent("store faults") > 0 || lost(w),
    "store-lost": lost,
    "handshake-failed": lost,
    "engine-lost": (w) => lost(w) || old.some((r) => engine(w, r).gone),
    "engine-unknown": (w) => w.spent("crashes") > 0,
    // An engine that was lost, or that others left alone, refuses.
    "engine-failed": () => true,
  };
  const told = (w: World, r: number): Objections[string] | undefined => w.memory("objections")[r];
  const close: Properties["always"] = closely
    ? {
      "who lost the store that knows the outcome does not wait for it": (w) =>
        old.every((r) =>
          told(w, r)?.cutOff !== true ||
          !["preparing", "voted", "committed.settling"].some((s) => w.in(partOf(r), s))
        ),
      "who voted, objects and can ask for the decision, asks": (w) =>
        old.every((r) =>
          told(w, r)?.objects !== true || !w.in(partOf(r), "voted") ||
          w.at(partOf(r))!.context.everyoneDecides !== true ||
          w.in(partOf(r), "voted.asking") || w.in(partOf(r), "voted.unreachable")
        ),
    }
    : {};
  return {
    always: {
      ...close,
      "no rank completes while another fails": (w) => {
        const said = ends(w).map((e) => e.outcome);
        return !(said.includes("completed") && said.includes("failed"));
      },
      "no rank commits before every old rank has voted": (w) =>
        old.every((r) => !w.in(partOf(r), "committed")) || old.every((r) => voted(w, r)),
      "no rank votes before every engine of the new group is ready": (w) =>
        !old.some((r) => voted(w, r)) || ready(w),
      "no engine stops serving before the ranks decided to commit": (w) =>
        decision(w) === "commit" ||
        old.every((r) => !engine(w, r).paused && engine(w, r).pausing === null),
      "no rank votes after it published why it gives up": (w) =>
        !w.in(partOf(0), "voted.awaitingVotes") || voted(w, 0),
      "completed means that every old rank has finished": (w) =>
        !completed(w) ||
        old.every((r) =>
          (["old_rank_finished", "shutdown_complete"] as const).some((k) =>
            reconfig(w, keyOf(k, EPOCH, r))
          )
        ),
      "what ranks say of the end is what the control store says": (w) =>
        ends(w).every(({ outcome }) =>
          outcome === "completed" ? completed(w) : outcome === "stranded" || !completed(w)
        ),
      "a rank that failed says why, with a cause that has its grounds": (w) =>
        ends(w).every(({ outcome, code }) =>
          outcome === "completed" || (code !== null && grounds[code]?.(w) === true)
        ),
      "nobody is left in doubt for good unless a store was lost, when all were ready to vote": (
        w,
      ) =>
        ends(w).every(({ outcome }) => outcome !== "stranded") ||
        (lost(w) && ready(w)),
      "who was late says whether there was an epoch to join": (w) =>
        ends(w).every(({ code, joined, missedEpoch }) =>
          code !== "prepare-late" || missedEpoch !== joined
        ),
      "an operation draws one epoch, and nothing is decided about any that is not": (w) =>
        w.memory("draws") <= 1 && control(w, decisionKey("")) === undefined,
      "new ranks are greeted where there are some, and without a greeting nobody goes on": (w) => {
        const greeting = w.at("rank/0/greeting");
        return greeting === undefined ||
          (target > ranks && !(greeting.in("failed") && w.in(partOf(0), "preparing")));
      },
      "who failed after it joined tells the others": (w) =>
        lost(w) ||
        old.every((r) =>
          endOf(w, r)?.outcome !== "failed" || failed(w) ||
          reconfig(w, keyOf("decides", EPOCH, r)) === undefined
        ),
      "a rank that completed serves the new topology, one that failed the old one": (w) =>
        old.every((r) => {
          const outcome = endOf(w, r)?.outcome;
          const { size, doubt } = w.at(`rank/${r}/topology`)!.context;
          if (outcome === "stranded") return doubt !== null;
          return outcome === undefined || size === (outcome === "completed" ? target : ranks);
        }),
      "an engine that cannot go on as it is, is named": (w) =>
        old.every((r) => {
          const end = endOf(w, r);
          return end?.outcome !== "failed" || end.engineToRestart || !touched(w, r);
        }),
      "a rank that completed has an engine of the new group that serves, or names it": (w) =>
        old.every((r) => {
          const end = endOf(w, r);
          if (end?.outcome !== "completed") return true;
          const { size, gone, paused, reconfiguration } = engine(w, r);
          if (r >= target) return gone || end.engineToRestart || lost(w);
          return end.engineToRestart ||
            (size === target && !paused && !gone && reconfiguration === null);
        }),
      "whoever may still give up has a deadline": (w) =>
        old.every((r) =>
          !w.in(partOf(r), "preparing") || w.timers(partOf(r)).includes("prepareDeadline")
        ),
      "an epoch of before is ended before a new one begins": (w) =>
        earlier === undefined || control(w, CURRENT_EPOCH) === EARLIER ||
        (control(w, decisionKey(EARLIER)) === "abort" &&
          control(w, errorKey(EARLIER)) !== undefined),
      "every event is one that the chart knows, and no action fails": (w) =>
        w.memory("surprises").length === 0,
    },
    sometimes: earlier === "committing"
      ? {
        "rank 0 leaves alone what others may be committing": (w) =>
          endOf(w, 0)?.code === "another-active",
      }
      : { "every rank completes": (w) => old.every((r) => endOf(w, r)?.outcome === "completed") },
    // Whoever still waits has a deadline of its own, or for its engine's answer, or waits for rank 0 which has one.
    rest: (w) =>
      old.every((r) =>
        endOf(w, r) !== undefined || w.timers(partOf(r)).length > 0 ||
        w.calls(partOf(r)).some(({ type }) => type === "engine.call") ||
        (w.in(partOf(r), "committed.settling") && w.timers(partOf(0)).length > 0)
      ),
  };
}
