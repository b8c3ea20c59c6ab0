/** Messages encoded by the peers' real encoder (msgspec), for tests. */
import { readFileSync } from "node:fs";
import { fromHex, toHex } from "../../src/protocol/mod.ts";

type Vector = { name: string; hex: string; bytes: number };
const vectors = JSON.parse(
  readFileSync(new URL("../data/vllm-vectors.json", import.meta.url), "utf8"),
) as Vector[];

/** Every name in the file, so that a test can prove that none is left out. */
export const vectorNames: readonly string[] = vectors.map((v) => v.name);

/** The bytes of one vector. */
export function vector(name: string): Uint8Array {
  const found = vectors.find((v) => v.name === name);
  if (found === undefined) throw new Error(`no vector ${name}`);
  return fromHex(found.hex);
}

export const hex = (bytes: Uint8Array): string => toHex(bytes);
