/** Typed access to decoded values. Each function returns the value or throws `Refused` with its path. */
import { Ext, Float } from "./msgpack.ts";
import type { Wire, WireMap } from "./msgpack-reader.ts";
import { Refused } from "./refusal.ts";

/** What a value is, in the words of a refusal. */
export function describe(value: Wire | undefined): string {
  if (value === undefined) return "nothing";
  if (value === null) return "nil";
  if (value instanceof Float) return `the float ${value.value}`;
  if (value instanceof Ext) return `an extension of type ${value.type}`;
  if (value instanceof Uint8Array) return `${value.length} bytes (binary)`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (value instanceof Map) return `a map of ${value.size}`;
  if (typeof value === "string") {
    return `the text ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}...` : value)}`;
  }
  return typeof value === "boolean" ? String(value) : `the integer ${value}`;
}

const wrong = (at: string, expected: string, value: Wire | undefined): Refused =>
  new Refused(value === undefined ? "missing" : "wrong-type", at, expected, describe(value));

/** The path of a member. */
export const member = (at: string, key: string): string => (at === "" ? key : `${at}.${key}`);

export function asMap(value: Wire | undefined, at: string): WireMap {
  if (value instanceof Map) return value;
  throw wrong(at, "a map", value);
}

export function asArray(value: Wire | undefined, at: string): readonly Wire[] {
  if (Array.isArray(value)) return value;
  throw wrong(at, "an array", value);
}

export function asText(value: Wire | undefined, at: string): string {
  if (typeof value === "string") return value;
  throw wrong(at, "text", value);
}

/** An integer in a range; safe integers by default. A float is refused, also a whole one. */
export function asInt(
  value: Wire | undefined,
  at: string,
  min: number = Number.MIN_SAFE_INTEGER,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value === "number" && value >= min && value <= max) return value;
  if (typeof value === "number" || typeof value === "bigint") {
    const range = min === 0 && max === Number.MAX_SAFE_INTEGER
      ? "an integer from 0"
      : max === Number.MAX_SAFE_INTEGER && min === Number.MIN_SAFE_INTEGER
      ? "an integer within 53 bits"
      : `an integer from ${min} to ${max}`;
    throw new Refused("wrong-value", at, range, describe(value));
  }
  throw wrong(at, "an integer", value);
}

/** A port: 0 means none. */
export const asPort = (value: Wire | undefined, at: string): number => asInt(value, at, 0, 65535);

/** A 64-bit integer as a decimal string, the form in which ids live outside this room. */
export function asId(value: Wire | undefined, at: string): string {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  throw wrong(at, "an integer", value);
}

/** A number: float or integer. */
export function asNumber(value: Wire | undefined, at: string): number {
  if (value instanceof Float) return value.value;
  if (typeof value === "number") return value;
  throw wrong(at, "a number", value);
}

export function asBool(value: Wire | undefined, at: string): boolean {
  if (typeof value === "boolean") return value;
  throw wrong(at, "true or false", value);
}

/** A boolean as the original's front-end reads it: 0 and 1 pass, because Python compares them as equal. */
export function asFlag(value: Wire | undefined, at: string): boolean {
  if (value === 0 || value === 1) return value === 1;
  return asBool(value, at);
}

/** Reads a member that may be nil or absent; both are null. */
export function orNull<T>(
  read: (value: Wire | undefined, at: string) => T,
  value: Wire | undefined,
  at: string,
): T | null {
  return value === null || value === undefined ? null : read(value, at);
}

/** An array of which every element is read alike. */
export function asArrayOf<T>(
  read: (value: Wire | undefined, at: string) => T,
  value: Wire | undefined,
  at: string,
): T[] {
  return asArray(value, at).map((item, i) => read(item, `${at}[${i}]`));
}
