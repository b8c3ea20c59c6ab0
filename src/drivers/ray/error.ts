export type RayErrorCode =
  /** Nobody answers, or not in time. */
  | "ray-unreachable"
  /** A token is wanted, or this one is wrong. */
  | "ray-unauthorised"
  /** Ray will not do it: the request is wrong, or the state does not allow it. */
  | "ray-refused"
  /** Ray tried and failed. */
  | "ray-trouble"
  /** An answer that this client does not understand. */
  | "ray-unexpected"
  /** It does not fit: `refusals` of the planner say what would. */
  | "ray-no-room"
  /** Jobs were accepted and did not all start in time. */
  | "ray-not-started";

/** What went wrong with Ray, in one sentence; tracebacks of the other side are cut down to their last line. */
export class RayError extends Error {
  readonly code: RayErrorCode;
  /** The HTTP status, where there was an answer. */
  readonly status: number | null;
  constructor(code: RayErrorCode, message: string, status: number | null = null) {
    super(message);
    this.name = "RayError";
    this.code = code;
    this.status = status;
  }
}
