export type HostErrorCode =
  /** The host was closed. */
  | "host-closed"
  /** The journal cannot be written any more: nothing that has to be recorded first leaves. */
  | "host-journal"
  /** A step could not be computed: a defect in a machine. The input is not in the journal. */
  | "host-step"
  /** A driver threw instead of answering. */
  | "host-driver"
  /** An effect or a resource has no driver. */
  | "host-no-driver"
  /** An event is not JSON. */
  | "host-event";

/** Why a host does not do what it was asked to, or stopped. `cause` is the first cause. */
export class HostError extends Error {
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, text: string, cause?: unknown) {
    super(text, cause === undefined ? undefined : { cause });
    this.name = "HostError";
    this.code = code;
  }
}

export const textOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
