/** Records, steps and systems as lines for a terminal. */
import type { Applied, JournalRecord } from "../journal/mod.ts";
import type { Instance, KernelEvent, Note, Stamped, System, Transition } from "../kernel/mod.ts";
import { duration } from "../view/mod.ts";
import type { Paint } from "./terminal.ts";
import { columns } from "./text.ts";

/** `14:03:22.140`. */
export const clockText = (at: number): string => new Date(at).toISOString().slice(11, 23);
/** `2026-11-30 14:03:22`. */
export const dateText = (at: number): string =>
  new Date(at).toISOString().slice(0, 19).replace("T", " ");

/** `local=true blocks=20000`: an event's members on one line, cut where it would become long. */
export function membersText({ type: _, ...members }: KernelEvent, longest = 100): string {
  const text = Object.entries(members).map(([name, value]) => `${name}=${valueText(value)}`).join(
    " ",
  );
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

const valueText = (value: unknown): string =>
  typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value) ?? "";

/** A record on one line: number, time, receiver, event. */
export function recordLine(
  { seq, at, to, event }: JournalRecord,
  paint: Paint,
  width: number,
): string {
  const head = `${String(seq).padStart(6)}  ${clockText(at)}  ${to.padEnd(18)}  ${event.type}`;
  const members = membersText(event, Math.max(20, width - head.length - 2));
  return `${paint.bold(String(seq).padStart(6))}  ${paint.dim(clockText(at))}  ` +
    `${to.padEnd(18)}  ${paint.cyan(event.type)}${members === "" ? "" : `  ${paint.dim(members)}`}`;
}

/** What a record led to: who moved where, what was asked of the world, what a person should know. */
export function appliedLines({ transitions, effects, notes }: Applied, paint: Paint): string[] {
  const moved = transitions.filter((t) => valueOf(t.before) !== valueOf(t.after));
  return [
    ...moved.map((t) => `          ${transitionText(t, paint)}`),
    ...effects.map((e) => `          ${paint.dim("→")} ${effectText(e, paint)}`),
    ...notes.map((n) => `          ${paint.yellow(`! ${noteText(n)}`)}`),
  ];
}

const valueOf = (state: Transition["before"]): string =>
  state === undefined ? "" : stateText(state.snapshot.value);

function transitionText({ instance, before, after }: Transition, paint: Paint): string {
  const from = before === undefined ? "starts" : valueOf(before);
  const to = after === undefined ? "stopped" : paint.green(valueOf(after));
  return `${instance.padEnd(18)}  ${from} ${paint.dim("▸")} ${to}`;
}

/** `running.watched`: a state's value on one line. */
export function stateText(value: unknown): string {
  if (typeof value === "string") return value;
  const parts = Object.entries(value as object).map(([k, v]) => `${k}.${stateText(v)}`);
  return parts.join(" + ");
}

function effectText(effect: Stamped, paint: Paint): string {
  const who = paint.dim(`${effect.id} of ${effect.from}`);
  switch (effect.kind) {
    case "message":
    case "call":
      return `${effect.kind} ${effect.effect.type}  ${who}  ${
        paint.dim(membersText(effect.effect as KernelEvent, 60))
      }`;
    case "abandon":
      return `abandon ${effect.call}  ${who}`;
    case "hold":
      return `hold ${effect.resource.type}  ${who}`;
    case "release":
      return `release ${effect.key}  ${who}`;
    case "arm":
      return `timer ${timerName(effect.timer)} due ${clockText(effect.dueAt)}  ${who}`;
    case "disarm":
      return `timer ${timerName(effect.timer)} off  ${who}`;
  }
}

/** `connectDeadline` of XState's own name for a delayed event. */
export const timerName = (timer: string): string =>
  /^xstate\.after\.([^.]+)\./.exec(timer)?.[1] ?? timer;

const noteText = ({ kind, instance, what, text }: Note): string =>
  `${kind}: ${what} at ${instance}${text === undefined ? "" : ` (${text})`}`;

/** A whole system: the state of every instance, its timers, open calls and resources. Equal lines of ranks are drawn together. */
export function systemLines(system: System, paint: Paint): string[] {
  const rows: string[][] = [];
  for (const { key, ids } of grouped([...system.instances])) {
    rows.push([`  ${idsText(ids)}`, key.state, key.facts]);
  }
  return columns(
    rows,
    (cell, _, column) => column === 1 ? paint.green(cell) : column === 2 ? paint.dim(cell) : cell,
  );
}

interface Group {
  readonly key: { readonly state: string; readonly facts: string };
  readonly ids: string[];
}

function grouped(instances: readonly Instance[]): Group[] {
  const groups = new Map<string, Group>();
  for (const instance of instances) {
    const key = { state: stateText(instance.state.snapshot.value), facts: factsText(instance) };
    const name = `${instance.id.replace(/\d+/g, "#")} ${key.state} ${key.facts}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { key, ids: [instance.id] });
    else group.ids.push(instance.id);
  }
  return [...groups.values()];
}

function factsText({ timers, calls, held }: Instance): string {
  return [
    ...held.map((h) => `holds ${h.resource.type}`),
    ...calls.map((c) => `waits for ${c.effect.type}`),
    ...timers.map((t) => `${timerName(t.timer)} at ${clockText(t.dueAt)}`),
  ].join(", ");
}

const idsText = (ids: readonly string[]): string =>
  ids.length <= 2 ? ids.join(", ") : `${ids[0]} … ${ids.at(-1)} (${ids.length})`;

/** How a journal's time is spoken of: when it began and how long it went on. */
export const spanText = (first: number, last: number): string =>
  `${dateText(first)}, over ${duration(Math.max(0, last - first))}`;
