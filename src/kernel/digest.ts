/** What goes into the digest of a system: every fact of every instance, as a set, so that it can be kept change by change. */
import { exclude, type Hash, hashText, hex, include, mix, TextHash, ZERO } from "./hash.ts";
import type { LocalState } from "./local.ts";
import type { Held, Instance, InstanceId, OpenCall, Stamped, Timer, Typed } from "./types.ts";

export const stateHash = (id: InstanceId, state: LocalState): Hash => mix(hashText(id), state.hash);
/** The hash of a system in which an instance moved from one state to another. */
export function movedHash(system: Hash, id: InstanceId, from: LocalState, to: LocalState): Hash {
  const name = hashText(id);
  return include(exclude(system, mix(name, from.hash)), mix(name, to.hash));
}
export const timerHash = (id: InstanceId, t: Timer): Hash =>
  text.begin("t|").add(id).add("|").add(t.timer).add(`|${t.generation}|${t.dueAt}`).end();
export const callHash = (id: InstanceId, c: OpenCall): Hash =>
  hashText(`c|${id}|${c.slot}|${c.id}|${jsonOf(c.effect)}`);
export const heldHash = (id: InstanceId, h: Held): Hash =>
  hashText(`h|${id}|${h.key}|${jsonOf(h.resource)}`);

/** The hash of a whole system from scratch. */
export function systemHash(instances: Iterable<Instance>): Hash {
  let hash = ZERO;
  for (const i of instances) {
    hash = include(hash, stateHash(i.id, i.state));
    for (const t of i.timers) hash = include(hash, timerHash(i.id, t));
    for (const c of i.calls) hash = include(hash, callHash(i.id, c));
    for (const h of i.held) hash = include(hash, heldHash(i.id, h));
  }
  return hash;
}

/** 16 hex digits for a step's effects in order: with the state's digest they tell whether two programs did the same. */
export function effectsDigest(effects: readonly Stamped[]): string {
  let hash = ZERO;
  for (const e of effects) hash = mix(hash, effectHash(e));
  return hex(hash);
}

const text = new TextHash();

/** The hash of what `JSON.stringify` says of an effect; the text of the commonest is never put together. */
function effectHash(e: Stamped): Hash {
  if (e.kind === "call" || e.kind === "abandon") return hashText(JSON.stringify(e));
  quoted(text.begin('{"id":"').add(e.id).add('","from":'), e.from);
  text.add(',"kind":"').add(e.kind);
  switch (e.kind) {
    case "message":
      text.add('","effect":').add(jsonOf(e.effect));
      break;
    case "arm":
    case "disarm":
      quoted(text.add('","timer":'), e.timer).add(',"generation":').add(`${e.generation}`);
      if (e.kind === "arm") text.add(',"dueAt":').add(`${e.dueAt}`);
      break;
    default:
      quoted(text.add('","key":'), e.key);
      if (e.kind === "hold") text.add(',"resource":').add(jsonOf(e.resource));
  }
  return text.add("}").end();
}

const quoted = (to: TextHash, name: string): TextHash =>
  PLAIN.test(name) ? to.add('"').add(name).add('"') : to.add(JSON.stringify(name));
/** Names that JSON writes as they are. */
const PLAIN = /^[\w/.@:-]*$/;

/** The last text of each type: equal states of many ranks ask for the same object. */
const texts = new Map<string, { readonly of: Typed; readonly text: string }>();

function jsonOf(of: Typed): string {
  const known = texts.get(of.type);
  if (known?.of === of) return known.text;
  const text = JSON.stringify(of);
  texts.set(of.type, { of, text });
  return text;
}
