import type { KeeperRefusal } from "./protocol.ts";

/** Why a keeper cannot be used. */
export type KeeperErrorCode =
  /** It could not be started, or ended before it answered. */
  | "keeper-start"
  /** Nobody listens at its place. */
  | "keeper-gone"
  /** Somebody accepts connections there and says nothing: a dead keeper's child, or a stopped one. */
  | "keeper-silent"
  /** The one that answered is not the one that was started. */
  | "keeper-other"
  /** The directory is not ours alone. */
  | "keeper-place"
  /** The connection was lost while a command was open: its outcome is unknown. */
  | "keeper-lost"
  | `keeper-${KeeperRefusal}`;

/** A keeper that cannot be used, or a command that it refused. */
export class KeeperError extends Error {
  readonly code: KeeperErrorCode;
  /** The fence that won, for `keeper-fenced`. */
  readonly fence: number | undefined;

  constructor(code: KeeperErrorCode, message: string, fence?: number) {
    super(message);
    this.name = "KeeperError";
    this.code = code;
    this.fence = fence;
  }
}
