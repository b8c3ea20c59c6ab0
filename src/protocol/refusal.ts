/**
 * What decoding answers: a value, or a refusal that says what was wrong and where.
 * Nothing that a peer can send makes this room throw at its caller.
 */

/**
 * Why bytes were refused. The codes are stable:
 *
 * - `malformed`: not MessagePack (truncated, trailing bytes, invalid UTF-8, a reserved opcode);
 * - `too-large`: more bytes, elements or nesting than the limits allow;
 * - `missing`: a required member is absent;
 * - `wrong-type`: a member is there and has another type;
 * - `wrong-value`: the type is right, the value cannot be;
 * - `wrong-frames`: the number of frames is not that of this conversation;
 * - `wrong-identity`: the routing id is not a rank's.
 */
export type RefusalCode =
  | "malformed"
  | "too-large"
  | "missing"
  | "wrong-type"
  | "wrong-value"
  | "wrong-frames"
  | "wrong-identity";

/** A refusal is a JSON value, so that events and journals can hold it. */
export type Refusal = {
  readonly code: RefusalCode;
  /** Path in the message, such as `addresses.inputs[1]`, or `byte 17`; empty for the whole message. */
  readonly at: string;
  readonly expected: string;
  readonly got: string;
  /** One sentence for people. */
  readonly text: string;
};

/** The answer of every decoder in this room. */
export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: Refusal };

/** Thrown and caught inside this room only; see {@link decoded}. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly code: RefusalCode;
  readonly at: string;
  readonly expected: string;
  readonly got: string;
  constructor(code: RefusalCode, at: string, expected: string, got: string) {
    super(`${at}: expected ${expected}, got ${got}`);
    this.code = code;
    this.at = at;
    this.expected = expected;
    this.got = got;
  }
}

/** A refusal of `what` (the message's name, as it appears in the sentence). */
export function refusal(
  what: string,
  code: RefusalCode,
  at: string,
  expected: string,
  got: string,
): Refusal {
  const where = at === "" ? "" : ` at ${at}`;
  return { code, at, expected, got, text: `${what}${where}: expected ${expected}, got ${got}` };
}

/** Runs a decoder's body and turns what it refuses into a value. Errors of our own code pass through. */
export function decoded<T>(what: string, body: () => T): Decoded<T> {
  try {
    return { ok: true, value: body() };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return {
      ok: false,
      refusal: refusal(what, error.code, error.at, error.expected, error.got),
    };
  }
}
