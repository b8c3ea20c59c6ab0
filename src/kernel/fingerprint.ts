/** What makes a state of a chart equal to another: its fingerprint as text, and as a hash that is kept up member by member. */
import type { AnyMachineSnapshot } from "xstate";
import { exclude, type Hash, hashText, include, mix, ZERO } from "./hash.ts";

/** Hashes of large parts of contexts. Contexts are never changed in place, so that a part is known by its identity. */
const parts = new WeakMap<object, Hash>();
/** Characters of JSON from which remembering a part is cheaper than hashing it again (a collector's work grows with what is remembered). */
const LARGE = 256;

function partHash(value: unknown): Hash {
  if (typeof value === "number" && Number.isFinite(value)) return hashText(`${value}`);
  if (typeof value !== "object" || value === null) return hashText(JSON.stringify(value) ?? "");
  const known = parts.get(value);
  if (known !== undefined) return known;
  const text = JSON.stringify(value);
  const hash = hashText(text);
  if (text.length >= LARGE) parts.set(value, hash);
  return hash;
}

/** The hash of what a fingerprint holds: the members of the context as a set, the rest as text. */
export const hashOf = (snapshot: AnyMachineSnapshot): Hash =>
  mix(membersHash(snapshot.context), restHash(snapshot));

type Context = Readonly<Record<string, unknown>>;

/** The hash of a context's members as a set. JSON has no member that is undefined. */
export function membersHash(context: Context): Hash {
  let hash = ZERO;
  for (const name in context) {
    if (context[name] !== undefined) hash = include(hash, memberHash(name, context[name]));
  }
  return hash;
}

/** That hash once these members are others. */
export function updatedHash(hash: Hash, context: Context, update: Context): Hash {
  for (const name in update) {
    const before = context[name];
    const after = update[name];
    if (before === after) continue;
    if (before !== undefined) hash = exclude(hash, memberHash(name, before));
    if (after !== undefined) hash = include(hash, memberHash(name, after));
  }
  return hash;
}

/** Names are few, and the same again and again. */
const names = new Map<string, Hash>();

function memberHash(name: string, value: unknown): Hash {
  let hash = names.get(name);
  if (hash === undefined) names.set(name, hash = hashText(name));
  return mix(hash, partHash(value));
}

/** The hash of the rest: value, status and history. */
export function restHash(snapshot: AnyMachineSnapshot): Hash {
  // deno-lint-ignore no-explicit-any
  const { value, status, historyValue } = snapshot as any;
  let rest = JSON.stringify(value) + status;
  for (const _ in historyValue) {
    rest += JSON.stringify(historyOf(historyValue));
    break;
  }
  return hashText(rest);
}

/** What a state is as text: JSON of value, context, status and history. */
export function fingerprint(snapshot: AnyMachineSnapshot): string {
  // deno-lint-ignore no-explicit-any
  const { value, context, status, historyValue } = snapshot as any;
  for (const _ in historyValue) {
    return JSON.stringify([value, context, status, historyOf(historyValue)]);
  }
  return JSON.stringify([value, context, status]);
}

const historyOf = (history: Record<string, { id: string }[]>): Record<string, { id: string }[]> =>
  Object.fromEntries(
    Object.entries(history).map(([id, nodes]) => [id, nodes.map((n) => ({ id: n.id }))]),
  );
