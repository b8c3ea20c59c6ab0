import { groupOf, type PlacedRank, type Placement, type PlacementGroup } from "./placement.ts";

/**
 * Carrying a placement out, as data: plan first, create second, undo on failure. Whoever creates groups asks
 * {@link nextStep}, does it, and says with {@link stepDone} or {@link stepFailed} what came of it. After a failure
 * every group that was created is removed, and one that was requested without an answer too.
 */
export interface Rollout {
  readonly status: "creating" | "created" | "undoing" | "undone";
  /** Still to be created, in order. */
  readonly pending: readonly PlacementGroup[];
  /** Created, and those being created, in order. */
  readonly held: readonly string[];
  /** Why creating stopped. */
  readonly failure: string | null;
  /** Groups that could not be removed: somebody must. */
  readonly leftover: readonly { readonly name: string; readonly reason: string }[];
}

export type RolloutStep =
  | { readonly do: "create"; readonly group: PlacementGroup }
  | { readonly do: "remove"; readonly name: string };

/** The rollout of all ranks of a placement, or of those that were added to it. */
export function startRollout(
  placement: Placement,
  ranks: readonly PlacedRank[] = placement.ranks,
): Rollout {
  return {
    status: ranks.length ? "creating" : "created",
    pending: ranks.map((rank) => groupOf(placement, rank)),
    held: [],
    failure: null,
    leftover: [],
  };
}

/** What is to be done now; null when there is nothing left. */
export function nextStep(rollout: Rollout): RolloutStep | null {
  if (rollout.status === "creating") return { do: "create", group: rollout.pending[0]! };
  if (rollout.status === "undoing") return { do: "remove", name: rollout.held.at(-1)! };
  return null;
}

/** The step succeeded. */
export function stepDone(rollout: Rollout): Rollout {
  if (rollout.status === "creating") {
    const pending = rollout.pending.slice(1);
    return {
      ...rollout,
      status: pending.length ? "creating" : "created",
      pending,
      held: [...rollout.held, rollout.pending[0]!.name],
    };
  }
  return rollout.status === "undoing" ? removed(rollout) : rollout;
}

/**
 * The step failed, or nobody waits for it any more. A create whose fate is not known (`mayExist`) counts as held and
 * is removed too.
 */
export function stepFailed(
  rollout: Rollout,
  reason: string,
  mayExist: boolean = false,
): Rollout {
  if (rollout.status === "creating") {
    return undo({
      ...rollout,
      held: mayExist ? [...rollout.held, rollout.pending[0]!.name] : rollout.held,
    }, reason);
  }
  if (rollout.status !== "undoing") return rollout;
  const name = rollout.held.at(-1)!;
  return removed({ ...rollout, leftover: [...rollout.leftover, { name, reason }] });
}

/** Everything held is removed, the newest first. */
function undo(rollout: Rollout, reason: string): Rollout {
  return {
    ...rollout,
    status: rollout.held.length ? "undoing" : "undone",
    pending: [],
    failure: reason,
  };
}

function removed(rollout: Rollout): Rollout {
  const held = rollout.held.slice(0, -1);
  return { ...rollout, status: held.length ? "undoing" : "undone", held };
}
