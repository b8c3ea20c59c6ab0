/**
 * A plan that cannot be made is an answer too: which flag, which value, what is wrong, what to do.
 * Every planner of this room returns refusals as data; `PlanRefused` is for callers that want to throw.
 */

export type RefusalCode =
  | "unknown-setting"
  | "invalid-value"
  | "modes-exclude-each-other"
  | "rank-missing"
  | "rank-out-of-range"
  | "local-size-missing"
  | "local-size-wrong"
  | "start-rank-ignored"
  | "front-end-not-first"
  | "headless-wrong"
  | "ray-wrong"
  | "elastic-wrong"
  | "address-unusable"
  | "loopback-with-remote"
  | "rank0-host-unknown"
  | "ipc-path-too-long"
  | "ipc-directory-missing"
  | "devices-missing"
  | "devices-twice"
  | "devices-mixed"
  | "devices-wrong"
  | "master-missing"
  | "strategy-wrong"
  | "size-wrong";

/** Every reason for which planning refuses, with its cause and its remedy in general terms. */
export const REFUSALS: Readonly<Record<RefusalCode, { cause: string; remedy: string }>> = {
  "unknown-setting": {
    cause: "The configuration has a setting that does not exist.",
    remedy: "Use the suggested name, or remove the setting.",
  },
  "invalid-value": {
    cause: "A setting has a value of the wrong type or outside its range.",
    remedy: "Give a value of the type and range that the message names.",
  },
  "modes-exclude-each-other": {
    cause: "More than one load-balancing mode was asked for.",
    remedy: "Keep one of the flags that select a mode.",
  },
  "rank-missing": {
    cause: "The mode has one process per rank, and this process was not told which rank it is.",
    remedy: "Add --data-parallel-rank.",
  },
  "rank-out-of-range": {
    cause: "A rank, or the last of this node's ranks, is not below the data-parallel size.",
    remedy: "Lower the rank or the local size, or raise the data-parallel size.",
  },
  "local-size-missing": {
    cause: "The node's share of the ranks is needed and was not given.",
    remedy: "Add --data-parallel-size-local.",
  },
  "local-size-wrong": {
    cause: "The node's share of the ranks does not fit the mode or the data-parallel size.",
    remedy: "Give the local size that the message names.",
  },
  "start-rank-ignored": {
    cause: "A start rank without a local size is ignored by vLLM: the node would claim rank 0.",
    remedy: "Add --data-parallel-size-local.",
  },
  "front-end-not-first": {
    cause: "An internal load balancer must be the front-end of rank 0, and this one is not.",
    remedy:
      "Start this node with --headless, or lower --data-parallel-size-local so that it becomes hybrid.",
  },
  "headless-wrong": {
    cause: "A node without a front-end was asked for where the mode or another flag needs one.",
    remedy: "Drop --headless, or the flag that the message names.",
  },
  "ray-wrong": {
    cause: "With Ray one front-end starts every engine, and another flag contradicts it.",
    remedy: "Drop the flag that the message names, or use the mp backend.",
  },
  "elastic-wrong": {
    cause: "Elastic expert parallelism is not possible together with another setting.",
    remedy: "Change the setting that the message names.",
  },
  "address-unusable": {
    cause: "Nobody can dial the address.",
    remedy: "Give an address of this host that the other nodes can reach.",
  },
  "loopback-with-remote": {
    cause: "Engines on other hosts are expected, and the address is a loopback address.",
    remedy:
      "Give an address that the other nodes can reach, or --allow-loopback when all run on this host.",
  },
  "rank0-host-unknown": {
    cause:
      "The ranks meet at rank 0's engine, which does not run on this host, and its host was not given.",
    remedy: "Add --data-parallel-master-ip with the address of the host that runs rank 0.",
  },
  "ipc-path-too-long": {
    cause: "The path of a unix socket may have 107 bytes at most.",
    remedy: "Give a shorter directory (--rpc-base-path), for example below /tmp.",
  },
  "ipc-directory-missing": {
    cause: "Unix sockets are needed and no directory for them was given.",
    remedy: "Give --rpc-base-path.",
  },
  "devices-missing": {
    cause: "A node has fewer devices than its ranks need; vLLM wraps around or fails in a worker.",
    remedy: "Place fewer ranks on the node, or make more devices visible.",
  },
  "devices-twice": {
    cause: "A device is given to more than one rank, or named twice.",
    remedy: "Name each device once.",
  },
  "devices-mixed": {
    cause: "Devices are named by number and by id, so an overlap cannot be seen.",
    remedy: "Name all devices by number, or all by id.",
  },
  "devices-wrong": {
    cause: "The list of devices is malformed, or names devices that do not exist.",
    remedy: "Name exactly the devices that each rank needs, separated by commas.",
  },
  "master-missing": {
    cause: "The master node is not among the nodes of the cluster that are alive.",
    remedy: "Give --data-parallel-address the address of a node of the cluster.",
  },
  "strategy-wrong": {
    cause: "The placement strategy does not suit the size of a rank, or another setting.",
    remedy: "Use the strategy that the refusal names.",
  },
  "size-wrong": {
    cause: "The new size is not one that this cluster can be scaled to.",
    remedy: "Give a size of at least one rank.",
  },
};

/** Why one setting, or its combination with others, is refused. */
export interface Refusal {
  readonly code: RefusalCode;
  /** The flag as a user types it, for example `--data-parallel-size-local`. */
  readonly flag: string;
  /** The value that was given, printed; `unset` when it was not. */
  readonly value: string;
  /** What is wrong, with the values it contradicts. */
  readonly message: string;
  /** What to do, concretely. */
  readonly fix: string;
  /** What vLLM itself says in this case, where it says something. */
  readonly upstream?: string;
}

/** Something that was decided silently by vLLM and that a user should know. */
export interface Notice {
  readonly code: string;
  readonly message: string;
}

/** A plan, or every reason why there is none. */
export type Planned<Plan> =
  | { readonly ok: true; readonly plan: Plan }
  | { readonly ok: false; readonly refusals: readonly Refusal[] };

/** One refusal as one line for a terminal or a log. */
export const refusalText = (r: Refusal): string =>
  `${r.flag} (${r.value}): ${r.message} ${r.fix} [${r.code}]`;

/** Thrown by {@link planOrThrow}; `refusals` has every reason, `code` that of the first. */
export class PlanRefused extends Error {
  readonly code: RefusalCode;
  readonly refusals: readonly Refusal[];
  constructor(refusals: readonly Refusal[]) {
    super(refusals.map(refusalText).join("\n"));
    this.name = "PlanRefused";
    this.code = refusals[0]?.code ?? "invalid-value";
    this.refusals = refusals;
  }
}

/** The plan, or a thrown {@link PlanRefused}. */
export function planOrThrow<Plan>(planned: Planned<Plan>): Plan {
  if (planned.ok) return planned.plan;
  throw new PlanRefused(planned.refusals);
}

/** The flag of a setting: `dataParallelSize` is `--data-parallel-size`. */
export const flagOf = (setting: string): string =>
  `--${setting.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
