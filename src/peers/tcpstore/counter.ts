import type { ByteString } from "../../protocol/tcpstore/mod.ts";

// What the original's number parser takes: blanks, a sign, digits; whatever follows is ignored. `[\s]` would be more.
const COUNTER = /^[ \t\n\v\f\r]*([+-]?[0-9]+)/;
const SMALL_DIGITS = 15;
const LEAST = -(2n ** 63n);
const GREATEST = 2n ** 63n - 1n;

/**
 * The number that a stored value counts as, in decimal, or `undefined` when it is none or does not fit 64 bits
 * (tcpstore-wire, section 4: ADD). An absent value counts as 0.
 */
export function counterOf(value: ByteString | undefined): string | undefined {
  if (value === undefined) return "0";
  const digits = COUNTER.exec(value)?.[1];
  if (digits === undefined) return undefined;
  if (digits.length <= SMALL_DIGITS) return String(Number(digits) + 0);
  const number = BigInt(digits.startsWith("+") ? digits.slice(1) : digits);
  return number < LEAST || number > GREATEST ? undefined : number.toString();
}

/** The sum of two decimal 64-bit integers, wrapped as two's complement does. */
export function sum(left: string, right: string): string {
  if (left.length <= SMALL_DIGITS && right.length <= SMALL_DIGITS) {
    return String(Number(left) + Number(right));
  }
  return BigInt.asIntN(64, BigInt(left) + BigInt(right)).toString();
}

/** Whether a decimal 64-bit integer is at least another. */
export function atLeast(left: string, right: string): boolean {
  return BigInt(left) >= BigInt(right);
}
