/** What goes into the digest of a system: every fact of every instance, as a set, so that it can be kept change by change. */
import { type Hash, hashText, hex, include, mix, ZERO } from "./hash.ts";
import type { LocalState } from "./local.ts";
import type { Held, Instance, InstanceId, OpenCall, Stamped, Timer, Typed } from "./types.ts";

export const stateHash = (id: InstanceId, state: LocalState): Hash => mix(hashText(id), state.hash);
export const timerHash = (id: InstanceId, t: Timer): Hash =>
  hashText(`t|${id}|${t.timer}|${t.generation}|${t.dueAt}`);
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
  for (const e of effects) hash = mix(hash, hashText(textOf(e)));
  return hex(hash);
}

/** What `JSON.stringify` says of an effect; the commonest are put together here, which is several times faster. */
function textOf(e: Stamped): string {
  const from = quoted(e.from);
  switch (e.kind) {
    case "message":
      return `{"id":"${e.id}","from":${from},"kind":"message","effect":${jsonOf(e.effect)}}`;
    case "arm":
    case "disarm": {
      const due = e.kind === "arm" ? `,"dueAt":${e.dueAt}` : "";
      const timer = `"timer":${quoted(e.timer)},"generation":${e.generation}`;
      return `{"id":"${e.id}","from":${from},"kind":"${e.kind}",${timer}${due}}`;
    }
    case "hold":
    case "release": {
      const resource = e.kind === "hold" ? `,"resource":${jsonOf(e.resource)}` : "";
      return `{"id":"${e.id}","from":${from},"kind":"${e.kind}","key":${quoted(e.key)}${resource}}`;
    }
    default:
      return JSON.stringify(e);
  }
}

const quoted = (name: string): string => PLAIN.test(name) ? `"${name}"` : JSON.stringify(name);
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
