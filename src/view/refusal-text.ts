/** Why something that a rank said was refused, and which flag of its command to add or to drop. */
import type { Mode } from "../planning/mod.ts";

/** What a start-up is told of a refusal, as in the event `rankRefused` and in the detail of a failure. */
export interface Refused {
  readonly [member: string]: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly text?: unknown;
  readonly expectedLocal?: unknown;
}

/** One clause; `mode` is the load balancing that this front-end derived from its own flags. */
export function refusalText({ reason, message, text, expectedLocal }: Refused, mode: Mode): string {
  switch (reason) {
    case "must-be-headless":
      return `its ${message} is without --headless, and load balancing is ${mode} here: add --headless to its command`;
    case "must-not-be-headless":
      return `its ${message} is with --headless, and load balancing is ${mode} here: drop --headless from its command`;
    case "wrong-locality": {
      const [expected, said] = expectedLocal === true ? ["local", "remote"] : ["remote", "local"];
      return `its ${message} is of a ${said} engine, and a ${expected} one is expected: look at --data-parallel-size-local and --data-parallel-start-rank on both sides`;
    }
    default:
      return String(text ?? message);
  }
}
