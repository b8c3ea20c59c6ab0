import type { ChartAction, ChartModel, ChartNode, ChartTransition } from "../model.ts";
import { indexOf, initialLeavesOf, transitionsOf } from "../model.ts";
import { escapeXml } from "../xml.ts";
import { toCond } from "./cond.ts";
import { MUSTER_NAMESPACE, SCXML_NAMESPACE, toEventToken, toNcName } from "./names.ts";

/**
 * A W3C SCXML 1.0 document of the chart, with the ECMAScript data model.
 *
 * Regions are `<parallel>`; a delayed transition is a `<send>` with `delay` (or `delayexpr` for a named delay) on entry,
 * a `<cancel>` on exit and a transition on its event; guards are calls in `cond`, which the host of the document
 * provides together with the named delays; actions are elements of our own namespace, which SCXML allows as executable
 * content. What SCXML cannot say (a description, `reenter` where it makes no difference) is in that namespace too, so
 * that `readScxml` gives the same model back.
 */
export function toScxml(model: ChartModel): string {
  return new Writer(model).write();
}

class Writer {
  readonly #model: ChartModel;
  readonly #index: ReadonlyMap<string, ChartNode>;
  readonly #lines: string[] = [];

  constructor(model: ChartModel) {
    this.#model = model;
    this.#index = indexOf(model);
  }

  write(): string {
    const { root } = this.#model;
    const wrapped = needsWrapping(root);
    const initial = wrapped ? root.id : root.initial!;
    this.#line(0, '<?xml version="1.0" encoding="UTF-8"?>');
    this.#open(0, "scxml", {
      xmlns: SCXML_NAMESPACE,
      "xmlns:m": MUSTER_NAMESPACE,
      version: "1.0",
      datamodel: "ecmascript",
      name: toNcName(this.#model.id),
      initial: toNcName(initial),
      "m:key": root.key === this.#model.id ? undefined : root.key,
    });
    this.#dataModel();
    if (wrapped) {
      this.#node(root, 1);
      if (endsBy(root)) {
        this.#empty(1, "final", { id: `${toNcName(root.id)}.-done`, "m:synthetic": "true" });
      }
    } else {
      this.#remarks(root, 1);
      for (const child of root.children) this.#node(child, 1);
    }
    this.#line(0, "</scxml>");
    return this.#lines.join("\n") + "\n";
  }

  /** Names of delays are variables that the host of the document sets. */
  #dataModel(): void {
    const names = transitionsOf(this.#model).flatMap(({ trigger }) =>
      trigger.kind === "after" && typeof trigger.delay === "string" ? [trigger.delay] : []
    );
    const delays = [...new Set(names)].sort();
    if (delays.length === 0) return;
    this.#open(1, "datamodel", {});
    for (const name of delays) this.#empty(2, "data", { id: toNcName(name) });
    this.#line(1, "</datamodel>");
  }

  #node(node: ChartNode, depth: number): void {
    const name =
      { parallel: "parallel", final: "final", history: "history" }[node.kind as string] ??
        "state";
    const parent = node.parent === undefined ? undefined : this.#index.get(node.parent);
    const derived = parent === undefined ? this.#model.id : `${parent.id}.${node.key}`;
    const attributes = {
      id: toNcName(node.id),
      initial: node.kind === "compound" && node.initial !== undefined
        ? toNcName(node.initial)
        : undefined,
      type: node.kind === "history" ? node.history : undefined,
      "m:key": derived === node.id ? undefined : node.key,
      "m:root": node.parent === undefined ? "true" : undefined,
      "m:default": node.kind === "history" && node.initial !== undefined ? "true" : undefined,
    };
    const from = this.#lines.length;
    this.#remarks(node, depth + 1);
    if (node.kind === "history") this.#historyDefault(node, depth + 1);
    else {
      this.#handlers(node, depth + 1);
      for (const invoke of node.invokes) {
        this.#empty(depth + 1, "invoke", {
          id: toNcName(invoke.id),
          type: "urn:muster:actor",
          src: `#${encodeURIComponent(invoke.src)}`,
        });
      }
      for (const t of node.transitions) this.#transition(node, t, depth + 1);
      if (node.parent === undefined && endsBy(node)) {
        this.#empty(depth + 1, "transition", {
          event: `done.state.${toNcName(node.id)}`,
          target: `${toNcName(node.id)}.-done`,
          "m:synthetic": "true",
        });
      }
      for (const child of node.children) this.#node(child, depth + 1);
    }
    const inside = this.#lines.splice(from);
    if (inside.length === 0) this.#empty(depth, name, attributes);
    else {
      this.#open(depth, name, attributes);
      this.#lines.push(...inside);
      this.#line(depth, `</${name}>`);
    }
  }

  #remarks(node: ChartNode, depth: number): void {
    if (node.description !== undefined) {
      this.#line(depth, `<m:description>${escapeXml(node.description)}</m:description>`);
    }
    for (const tag of node.tags) this.#empty(depth, "m:tag", { name: tag });
    if (node.meta !== undefined) this.#empty(depth, "m:meta", { json: JSON.stringify(node.meta) });
  }

  /** SCXML demands a default; without one XState enters what the parent would enter first. */
  #historyDefault(node: ChartNode, depth: number): void {
    const parent = this.#index.get(node.parent!)!;
    const targets = node.initial !== undefined
      ? [node.initial]
      : parent.kind === "parallel"
      ? initialLeavesOf(this.#index, parent.id).map((leaf) => leaf.id)
      : [parent.initial!];
    this.#empty(depth, "transition", { target: targets.map(toNcName).join(" ") });
  }

  /** Entry actions and armed delays; exit actions and cancelled delays, in XState's order. */
  #handlers(node: ChartNode, depth: number): void {
    const delays = delaysOf(node);
    const entry = [
      ...node.entry.map(actionElement),
      ...delays.map((delay) =>
        element("send", {
          id: afterEvent(node, delay),
          event: afterEvent(node, delay),
          ...(typeof delay === "number" ? { delay: `${delay}ms` } : { delayexpr: toNcName(delay) }),
        })
      ),
    ];
    const exit = [
      ...node.exit.map(actionElement),
      ...delays.map((delay) => element("cancel", { sendid: afterEvent(node, delay) })),
    ];
    for (const [name, content] of [["onentry", entry], ["onexit", exit]] as const) {
      if (content.length === 0) continue;
      this.#open(depth, name, {});
      for (const text of content) this.#line(depth + 1, text);
      this.#line(depth, `</${name}>`);
    }
  }

  #transition(node: ChartNode, t: ChartTransition, depth: number): void {
    const itself = t.targets.length === 1 && t.targets[0] === t.source;
    const inner = t.targets.length > 0 &&
      t.targets.every((id) => this.#isInside(id, node.id));
    // XState's self-transition without `reenter` leaves the state itself alone; SCXML's would leave and enter it.
    const stays = itself && !t.reenter;
    const targets = stays ? (node.initial === undefined ? [] : [node.initial]) : t.targets;
    const attributes = {
      event: eventAttribute(node, t),
      cond: t.guard === undefined ? undefined : toCond(t.guard),
      target: targets.length === 0 ? undefined : targets.map(toNcName).join(" "),
      type: (inner || (stays && targets.length > 0)) && !t.reenter && node.kind === "compound"
        ? "internal"
        : undefined,
      "m:self": stays ? "true" : undefined,
      "m:reenter": t.reenter && !inner && !itself ? "true" : undefined,
      "m:inner": inner && !t.reenter && node.kind !== "compound" ? "true" : undefined,
      "m:description": t.description,
    };
    if (t.actions.length === 0) {
      this.#empty(depth, "transition", attributes);
      return;
    }
    this.#open(depth, "transition", attributes);
    for (const action of t.actions) this.#line(depth + 1, actionElement(action));
    this.#line(depth, "</transition>");
  }

  #isInside(id: string, ancestor: string): boolean {
    for (let node = this.#index.get(id); node?.parent !== undefined;) {
      if (node.parent === ancestor) return true;
      node = this.#index.get(node.parent);
    }
    return false;
  }

  #line(depth: number, text: string): void {
    this.#lines.push("  ".repeat(depth) + text);
  }

  #open(depth: number, name: string, attributes: Attributes): void {
    this.#line(depth, element(name, attributes).replace(/\/>$/, ">"));
  }

  #empty(depth: number, name: string, attributes: Attributes): void {
    this.#line(depth, element(name, attributes));
  }
}

type Attributes = Readonly<Record<string, string | undefined>>;

function element(name: string, attributes: Attributes): string {
  const parts = Object.entries(attributes)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map(([key, value]) => ` ${key}="${escapeXml(value)}"`);
  return `<${name}${parts.join("")}/>`;
}

const actionElement = (action: ChartAction): string =>
  element("m:action", {
    name: action.name,
    params: action.params === undefined ? undefined : JSON.stringify(action.params),
    inline: action.inline ? "true" : undefined,
  });

/** `<scxml>` itself has no transitions, no entry and no regions. */
const needsWrapping = (root: ChartNode): boolean =>
  root.kind !== "compound" || root.transitions.length > 0 || root.entry.length > 0 ||
  root.exit.length > 0 || root.invokes.length > 0;

/** A machine ends when its root does; a document ends at a `<final>` of its own. */
const endsBy = (root: ChartNode): boolean =>
  root.kind === "final" ||
  (root.kind === "compound" && root.children.some((child) => child.kind === "final")) ||
  (root.kind === "parallel" && root.children.every(endsBy));

const afterEvent = (node: { id: string }, delay: string | number): string =>
  `after.${typeof delay === "number" ? delay : toNcName(delay)}.${toNcName(node.id)}`;

function delaysOf(node: ChartNode): readonly (string | number)[] {
  const delays = node.transitions.flatMap((t) =>
    t.trigger.kind === "after" ? [t.trigger.delay] : []
  );
  return [...new Set(delays)];
}

function eventAttribute(node: ChartNode, t: ChartTransition): string | undefined {
  switch (t.trigger.kind) {
    case "event":
      return toEventToken(t.trigger.event);
    case "after":
      return afterEvent(node, t.trigger.delay);
    case "always":
      return undefined;
    case "done":
      return `done.state.${toNcName(node.id)}`;
    case "actor":
      return `${
        {
          done: "done.invoke",
          error: "error.invoke",
          snapshot: "snapshot.invoke",
        }[t.trigger.outcome]
      }.${toNcName(t.trigger.actor)}`;
  }
}
