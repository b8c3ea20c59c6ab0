/**
 * Opaque values (arguments and results of utilities) as JSON, without loss, so that events and journals hold them.
 *
 * What JSON has stays as it is. The rest is tagged: `{ $int: "16402587876332016112" }` for integers beyond 53
 * bits, `{ $float: 1 }` for whole floats (`"NaN"`, `"Infinity"`, `"-Infinity"` and `"-0"` as text),
 * `{ $bytes: "0a0b" }`, `{ $ext: 3, data: "0a" }`, and `{ $map: [[key, value]] }` for maps that a JSON object
 * cannot hold. A number with a fraction is a float either way.
 */
import { fromHex, toHex } from "./hex.ts";
import { type Encodable, Entries, Ext, Float } from "./msgpack.ts";
import type { Wire } from "./msgpack-reader.ts";

export type Json = null | boolean | number | string | readonly Json[] | {
  readonly [key: string]: Json;
};

/** A decoded value as JSON. Never throws. */
export function wireToJson(value: Wire): Json {
  if (value === null || typeof value !== "object") {
    return typeof value === "bigint" ? { $int: String(value) } : value;
  }
  if (value instanceof Float) return floatToJson(value.value);
  if (value instanceof Ext) return { $ext: value.type, data: toHex(value.data) };
  if (value instanceof Uint8Array) return { $bytes: toHex(value) };
  if (value instanceof Map) {
    const entries = [...value].map(([key, member]) => [wireToJson(key), wireToJson(member)]);
    const plain = entries.every(([key]) => typeof key === "string" && !key.startsWith("$"));
    return plain ? Object.fromEntries(entries as [string, Json][]) : { $map: entries as Json[] };
  }
  return (value as readonly Wire[]).map(wireToJson);
}

function floatToJson(value: number): Json {
  if (!Number.isFinite(value)) return { $float: String(value) };
  if (Object.is(value, -0)) return { $float: "-0" };
  return Number.isInteger(value) ? { $float: value } : value;
}

/**
 * The reverse of {@link wireToJson}. Throws a `TypeError` for a tag that is not one of ours, or one whose
 * content is wrong.
 */
export function jsonToWire(value: Json): Encodable {
  if (typeof value === "number" && !Number.isInteger(value)) return new Float(value);
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(jsonToWire);
  const entries = Object.entries(value as { readonly [key: string]: Json });
  const [tag, content] = entries[0] ?? ["", null];
  if (!tag.startsWith("$")) {
    return Object.fromEntries(entries.map(([key, member]) => [key, jsonToWire(member)]));
  }
  const data = entries.length === 2 && entries[1]![0] === "data" ? entries[1]![1] : undefined;
  if (tag === "$ext" && typeof content === "number" && typeof data === "string") {
    return new Ext(content, fromHex(data));
  }
  if (entries.length === 1) {
    if (tag === "$int" && typeof content === "string") return BigInt(content);
    if (tag === "$float" && (typeof content === "number" || typeof content === "string")) {
      return new Float(Number(content));
    }
    if (tag === "$bytes" && typeof content === "string") return fromHex(content);
    if (tag === "$map" && Array.isArray(content)) {
      return new Entries(
        (content as [Json, Json][]).map(([k, v]) => [jsonToWire(k), jsonToWire(v)] as const),
      );
    }
  }
  throw new TypeError(`not a tagged value: ${JSON.stringify(value).slice(0, 80)}`);
}
