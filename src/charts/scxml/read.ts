import type {
  ChartAction,
  ChartModel,
  ChartNode,
  ChartTransition,
  ChartTrigger,
  NodeKind,
} from "../model.ts";
import { parseXml, type XmlElement } from "../xml.ts";
import { fromCond } from "./cond.ts";
import { fromEventToken, fromNcName } from "./names.ts";
import { assertScxml } from "./validate.ts";

/**
 * The chart of an SCXML document: `readScxml(toScxml(model))` equals `model`.
 * Documents by others are read too: `<initial>` elements, several targets, executable content (by name).
 * Throws `ChartError`: `chart.scxml-syntax` with line and column, `chart.scxml-invalid` with every fault found.
 */
export function readScxml(text: string): ChartModel {
  const document = parseXml(text);
  assertScxml(document);
  const states = stateElements(document);
  const wrapper = states.find((element) => element.attributes["m:root"] === "true");
  const id = fromNcName(document.attributes["name"] ?? "scxml");
  if (wrapper) return { id, root: readState(wrapper, undefined, [], id) };
  const key = document.attributes["m:key"] ?? id;
  const children = states.map((s) => readState(s, { id, path: [] }, [], key));
  const initial = document.attributes["initial"];
  return {
    id,
    root: {
      id,
      key,
      path: [],
      kind: "compound",
      initial: initial === undefined ? children[0]!.id : fromNcName(initial.split(/\s+/)[0]!),
      children,
      entry: [],
      exit: [],
      invokes: [],
      transitions: [],
      ...readRemarks(document),
    },
  };
}

const stateElements = (element: XmlElement): readonly XmlElement[] =>
  element.children.filter((child) =>
    ["state", "parallel", "final", "history"].includes(child.name) &&
    child.attributes["m:synthetic"] === undefined
  );

function kindOf(element: XmlElement, inner: number): NodeKind {
  if (element.name !== "state") return element.name as NodeKind;
  return inner > 0 ? "compound" : "atomic";
}

function readState(
  element: XmlElement,
  parent: { id: string; path: readonly string[] } | undefined,
  siblings: readonly string[],
  machine: string,
): ChartNode {
  const id = fromNcName(element.attributes["id"] ?? `${parent?.id ?? machine}.${siblings.length}`);
  const derived = parent && id.startsWith(`${parent.id}.`) ? id.slice(parent.id.length + 1) : id;
  const key = element.attributes["m:key"] ?? derived;
  const path = parent === undefined ? [] : [...parent.path, key];
  const inner = stateElements(element);
  const seen: string[] = [];
  const children = inner.map((child) => {
    const node = readState(child, { id, path }, seen, machine);
    seen.push(node.id);
    return node;
  });
  const kind = kindOf(element, inner.length);
  const initial = initialOf(element, kind, children);
  return {
    id,
    key,
    path,
    kind,
    ...(parent === undefined ? {} : { parent: parent.id }),
    ...(kind === "history"
      ? { history: element.attributes["type"] === "deep" ? "deep" : "shallow" }
      : {}),
    ...(initial === undefined ? {} : { initial }),
    children,
    entry: handlers(element, "onentry"),
    exit: handlers(element, "onexit"),
    invokes: named(element, "invoke").map((invoke) => ({
      id: fromNcName(invoke.attributes["id"] ?? "invoke"),
      src: decodeURIComponent((invoke.attributes["src"] ?? "").replace(/^#/, "")),
    })),
    transitions: kind === "history" ? [] : readTransitions(element, id, kind, children),
    ...readRemarks(element),
  };
}

function initialOf(
  element: XmlElement,
  kind: NodeKind,
  children: readonly ChartNode[],
): string | undefined {
  if (kind === "history") {
    if (element.attributes["m:default"] !== "true") return undefined;
    return fromNcName(named(element, "transition")[0]!.attributes["target"]!);
  }
  if (kind !== "compound") return undefined;
  const target = element.attributes["initial"] ??
    named(named(element, "initial")[0], "transition")[0]?.attributes["target"];
  return target === undefined ? children[0]?.id : fromNcName(target.split(/\s+/)[0]!);
}

function readTransitions(
  element: XmlElement,
  source: string,
  kind: NodeKind,
  children: readonly ChartNode[],
): ChartTransition[] {
  const delays = armedDelays(element);
  const own = named(element, "transition").filter((t) => t.attributes["m:synthetic"] === undefined);
  return own.map((t, n) => {
    const a = t.attributes;
    const stays = a["m:self"] === "true";
    const targets = stays ? [source] : (a["target"]?.split(/\s+/) ?? []).map(fromNcName);
    const inside = targets.length > 0 && targets.every((id) => contains(children, id));
    const reenter = !stays && (a["m:reenter"] === "true" ||
      (targets.length === 1 && targets[0] === source) ||
      (inside && a["type"] !== "internal" && a["m:inner"] !== "true" && kind !== "atomic"));
    const trigger = readTrigger(a["event"], source, delays);
    return {
      id: `${source}#${n}`,
      source,
      targets,
      trigger,
      eventType: eventTypeOf(trigger, source),
      ...(a["cond"] === undefined ? {} : { guard: fromCond(a["cond"]) }),
      actions: t.children.map(readAction),
      reenter,
      ...(a["m:description"] === undefined ? {} : { description: a["m:description"] }),
    };
  });
}

/** Delays by the event that their `<send>` will raise. */
function armedDelays(element: XmlElement): ReadonlyMap<string, string | number> {
  const delays = new Map<string, string | number>();
  for (const entry of named(element, "onentry")) {
    for (const { attributes: a } of named(entry, "send")) {
      if (a["event"] === undefined) continue;
      if (a["delay"] !== undefined) delays.set(a["event"], milliseconds(a["delay"]));
      if (a["delayexpr"] !== undefined) delays.set(a["event"], fromNcName(a["delayexpr"]));
    }
  }
  return delays;
}

function milliseconds(duration: string): number {
  const unit = /[a-z]+$/.exec(duration)![0];
  const scale = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit]!;
  return Number(duration.slice(0, -unit.length)) * scale;
}

function readTrigger(
  event: string | undefined,
  source: string,
  delays: ReadonlyMap<string, string | number>,
): ChartTrigger {
  if (event === undefined) return { kind: "always" };
  const delay = delays.get(event);
  if (delay !== undefined) return { kind: "after", delay };
  const done = /^done\.state\.(.*)$/.exec(event);
  if (done && fromNcName(done[1]!) === source) return { kind: "done" };
  const actor = /^(done|error|snapshot)\.invoke\.(.*)$/.exec(event);
  if (actor) {
    return {
      kind: "actor",
      outcome: actor[1] as "done" | "error" | "snapshot",
      actor: fromNcName(actor[2]!),
    };
  }
  return { kind: "event", event: fromEventToken(event) };
}

function eventTypeOf(trigger: ChartTrigger, source: string): string {
  switch (trigger.kind) {
    case "event":
      return trigger.event;
    case "after":
      return `xstate.after.${trigger.delay}.${source}`;
    case "always":
      return "";
    case "done":
      return `xstate.done.state.${source}`;
    case "actor":
      return trigger.outcome === "snapshot"
        ? `xstate.snapshot.${trigger.actor}`
        : `xstate.${trigger.outcome}.actor.${trigger.actor}`;
  }
}

const handlers = (element: XmlElement, name: string): readonly ChartAction[] =>
  named(element, name).flatMap((handler) =>
    handler.children.filter((c) => !isTimer(c)).map(readAction)
  );

/** Our own sends and cancels of delays; those of other documents are actions. */
const isTimer = ({ name, attributes: a }: XmlElement): boolean =>
  (name === "send" && (a["delay"] !== undefined || a["delayexpr"] !== undefined)) ||
  (name === "cancel" && (a["sendid"]?.startsWith("after.") ?? false));

function readAction(element: XmlElement): ChartAction {
  const a = element.attributes;
  if (element.name === "m:action") {
    return {
      name: a["name"] ?? "",
      ...(a["params"] === undefined ? {} : { params: JSON.parse(a["params"]) as unknown }),
      ...(a["inline"] === "true" ? { inline: true as const } : {}),
    };
  }
  const subject = a["event"] ?? a["location"] ?? a["label"] ?? a["expr"] ?? a["sendid"];
  return { name: subject === undefined ? element.name : `${element.name} ${subject}` };
}

function readRemarks(element: XmlElement): Pick<ChartNode, "tags" | "description" | "meta"> {
  const description = named(element, "m:description")[0]?.text;
  const meta = named(element, "m:meta")[0]?.attributes["json"];
  return {
    tags: named(element, "m:tag").map((tag) => tag.attributes["name"] ?? ""),
    ...(description === undefined ? {} : { description }),
    ...(meta === undefined ? {} : { meta: JSON.parse(meta) as unknown }),
  };
}

const named = (element: XmlElement | undefined, name: string): readonly XmlElement[] =>
  element?.children.filter((child) => child.name === name) ?? [];

const contains = (nodes: readonly ChartNode[], id: string): boolean =>
  nodes.some((node) => node.id === id || contains(node.children, id));
