import type { ProcessIdentity } from "../process-table.ts";

/**
 * What a coordinator and its keeper say to each other: one JSON object a line, over a unix socket that only their user can open.
 *
 * A request is `{n, do, ...}`, its reply `{re: n, ok}` or `{re: n, error}`. What happens by itself is pushed as `{event, ...}`.
 * The first request of a connection is `hello`; any other one before it ends the connection.
 */

/** Raised when the meaning of a line changes. A keeper refuses a hello of another version. */
export const KEEPER_PROTOCOL = 1;
/** The longest line that either side accepts, in bytes: an environment and a command line fit many times. */
export const MAX_LINE_BYTES: number = 1024 * 1024;
/** How long a new connection may take to say hello, in milliseconds. */
export const HELLO_WITHIN_MS = 2000;
/** How long a keeper waits for its first controller, in milliseconds: separate from the lease, which may be 0. */
export const FIRST_CONTROLLER_WITHIN_MS = 10_000;
/** Every process that a keeper starts carries `<keeper's mark>/<launch>` in this variable: how strays are found. */
export const LAUNCH_MARK = "MUSTER_LAUNCH";

/** What to start. `id` makes it idempotent: the same id again answers with the process that runs already. */
export interface Launch {
  /** The launch's id: the id of the effect that asks for it. */
  id: string;
  /** Program and arguments; the program is looked up in `env.PATH` unless it is a path. */
  argv: string[];
  /** The complete environment: nothing is inherited. The launch's mark and `SPT_NOENV=1` are added. */
  env: Record<string, string>;
  cwd: string;
  /** Absolute path of the file that takes standard output and error. Appended to; made with mode 0600. */
  log: string;
  /** When the log is larger, it becomes `<log>.1` (replacing an earlier one) and begins anew. Default 64 MiB. */
  maxLogBytes?: number;
  /** For the controller's own use: kept, and told with the launch. */
  note?: string;
}

/** A launch as the keeper has it. `startTicks` and `pid` are null when nothing could be started. */
export interface ChildStatus {
  id: string;
  pid: number | null;
  startTicks: number | null;
  alive: boolean;
  code: number | null;
  signal: string | null;
  log: string;
  /** Size of the log in bytes: output that grows is progress. */
  logBytes: number;
  note: string | null;
}

/** A launch ended. Kept, and told again to every new controller, until it is acknowledged. */
export interface ExitEvent {
  /** Counts the exits of this keeper, from 1. */
  seq: number;
  id: string;
  pid: number | null;
  /** The exit code, or null when a signal ended it or it never started. */
  code: number | null;
  signal: string | null;
  /** Why nothing could be started. */
  error?: { code: string; message: string };
  /** Last lines of its log. */
  tail: string[];
  /** Wall clock, milliseconds. */
  at: number;
}

/** How a stop went. */
export interface StopReport {
  ms: number;
  /** Launches that had to be killed because they outlived the deadline. */
  killed: string[];
  /** Processes outside their launch's group that were found by mark and killed; null where the system cannot tell. */
  strays: number | null;
  /** Launches that did not even end when killed (a process that hangs in the kernel). */
  stuck: string[];
}

/** A service that the keeper runs inside itself, so that it survives the coordinator. */
export interface ServiceStatus {
  id: string;
  kind: string;
  /** Where it can be reached, and whatever else its kind tells: JSON. */
  info: unknown;
}

export interface Hello {
  token: string;
  /** The owner's fence: a lower one than the keeper has seen is refused, a higher one takes over. */
  fence: number;
  /** How long everything may go on without a controller, in milliseconds; 0 stops everything as soon as it is gone. */
  leaseMs: number;
  protocol: number;
  /** When given, a controller that says nothing for so long counts as gone although its connection is open. */
  heartbeatMs?: number;
}

export interface Welcome {
  protocol: number;
  keeper: ProcessIdentity & { mark: string; runtime: string };
  children: ChildStatus[];
  /** Exits that were not acknowledged yet, oldest first. */
  exits: ExitEvent[];
  services: ServiceStatus[];
}

/** All commands: what is asked, and what is answered. */
export interface KeeperCommands {
  hello: { ask: Hello; answer: Welcome };
  /** A program that cannot be started is not an error here: it is an exit. */
  spawn: { ask: Launch; answer: ChildStatus };
  /** `sent` is false when nobody is there any more. */
  signal: {
    ask: { id: string; signal: string; scope: "group" | "leader" };
    answer: { sent: boolean };
  };
  /** Terminate, wait for the deadline, kill the whole tree; answered when it is gone. */
  stop: { ask: { id: string; deadlineMs: number }; answer: StopReport };
  list: { ask: Empty; answer: { children: ChildStatus[]; services: ServiceStatus[] } };
  tail: { ask: { id: string; lines: number }; answer: { lines: string[] } };
  lease: { ask: { ms: number }; answer: Empty };
  ping: { ask: Empty; answer: { at: number } };
  /** Exits up to this one are in the controller's journal. */
  ack: { ask: { seq: number }; answer: Empty };
  /** Starts a hosted service; the same id again answers with the one that runs. */
  "service-start": {
    ask: { id: string; kind: string; options: unknown };
    answer: ServiceStatus;
  };
  "service-stop": { ask: { id: string }; answer: { stopped: boolean } };
  /** Stops everything and ends the keeper. Answered before it ends. */
  "host-stop": { ask: { deadlineMs: number }; answer: StopReport };
}
export type KeeperCommand = keyof KeeperCommands;
export type Empty = Record<string, never>;

/** What the keeper says by itself. */
export type KeeperPush =
  | ({ event: "exited" } & ExitEvent)
  /** Everything was stopped, after all exits, because of `why`; the keeper ends. */
  | ({ event: "stopped"; why: string } & StopReport)
  /** Another controller with this fence has taken over; the connection closes. */
  | { event: "superseded"; fence: number };

/** Refusals of a keeper. */
export type KeeperRefusal =
  | "unauthorised"
  | "fenced"
  | "protocol"
  | "hello-first"
  | "bad-request"
  | "unknown-launch"
  | "unknown-service"
  | "service-failed"
  | "stopping"
  | "internal";

export interface WireError {
  code: KeeperRefusal;
  message: string;
  fence?: number;
}
export type KeeperReply = { re: number; ok: unknown } | { re: number; error: WireError };

/** A refusal on its way to the wire. */
export class Refused extends Error {
  readonly code: KeeperRefusal;
  readonly fence: number | undefined;
  constructor(code: KeeperRefusal, message: string, fence?: number) {
    super(message);
    this.name = "Refused";
    this.code = code;
    this.fence = fence;
  }
}
