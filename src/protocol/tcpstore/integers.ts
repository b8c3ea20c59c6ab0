import type { ByteString } from "./messages.ts";

/** A u32, little-endian. */
export function u32Text(value: number): ByteString {
  return String.fromCharCode(
    value & 0xff,
    value >>> 8 & 0xff,
    value >>> 16 & 0xff,
    value >>> 24 & 0xff,
  );
}

/** A u64 below 2^53, little-endian: lengths and counts. */
export function u64Text(value: number): ByteString {
  if (value < 256) return SMALL[value]!;
  return u32Text(value >>> 0) + u32Text(Math.floor(value / 0x1_0000_0000));
}

/** An i64 given in decimal, little-endian; taken modulo 2^64. */
export function i64Text(decimal: string): ByteString {
  const value = Number(decimal);
  if (value >= 0 && value <= Number.MAX_SAFE_INTEGER) return u64Text(value);
  const bits = BigInt.asUintN(64, BigInt(decimal));
  return u32Text(Number(bits & 0xffff_ffffn)) + u32Text(Number(bits >> 32n));
}

const SMALL: readonly ByteString[] = Array.from(
  { length: 256 },
  (_, value) => String.fromCharCode(value, 0, 0, 0, 0, 0, 0, 0),
);
