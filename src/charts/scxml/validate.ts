import { ChartError } from "../error.ts";
import type { XmlElement } from "../xml.ts";
import { SCXML_NAMESPACE } from "./names.ts";

/** Executable content of SCXML 1.0, section 4, that may stand in handlers and transitions. */
const EXECUTABLE = ["raise", "if", "foreach", "log", "assign", "script", "send", "cancel"];
const STATES = ["state", "parallel", "final", "history"];

interface Rule {
  readonly children: readonly string[];
  readonly required?: readonly string[];
  readonly optional?: readonly string[];
}

/** Elements, their children and attributes as the W3C recommendation of 2015 has them (sections 3 to 6). */
const RULES: Readonly<Record<string, Rule>> = {
  scxml: {
    children: ["state", "parallel", "final", "datamodel", "script"],
    required: ["xmlns", "version"],
    optional: ["initial", "name", "datamodel", "binding"],
  },
  state: {
    children: ["onentry", "onexit", "transition", "initial", "datamodel", "invoke", ...STATES],
    optional: ["id", "initial"],
  },
  parallel: {
    children: [
      "onentry",
      "onexit",
      "transition",
      "datamodel",
      "invoke",
      "state",
      "parallel",
      "history",
    ],
    optional: ["id"],
  },
  final: { children: ["onentry", "onexit", "donedata"], optional: ["id"] },
  history: { children: ["transition"], optional: ["id", "type"] },
  initial: { children: ["transition"] },
  transition: { children: EXECUTABLE, optional: ["event", "cond", "target", "type"] },
  onentry: { children: EXECUTABLE },
  onexit: { children: EXECUTABLE },
  datamodel: { children: ["data"] },
  data: { children: [], required: ["id"], optional: ["src", "expr"] },
  invoke: {
    children: ["param", "finalize", "content"],
    optional: ["type", "typeexpr", "src", "srcexpr", "id", "idlocation", "namelist", "autoforward"],
  },
  finalize: { children: EXECUTABLE },
  donedata: { children: ["content", "param"] },
  content: { children: ["*"], optional: ["expr"] },
  param: { children: [], required: ["name"], optional: ["expr", "location"] },
  send: {
    children: ["content", "param"],
    optional: [
      ...["event", "eventexpr", "target", "targetexpr", "type", "typeexpr", "id", "idlocation"],
      ...["delay", "delayexpr", "namelist"],
    ],
  },
  cancel: { children: [], optional: ["sendid", "sendidexpr"] },
  raise: { children: [], required: ["event"] },
  log: { children: [], optional: ["label", "expr"] },
  assign: { children: ["*"], required: ["location"], optional: ["expr"] },
  script: { children: [], optional: ["src"] },
  if: { children: [...EXECUTABLE, "elseif", "else"], required: ["cond"] },
  elseif: { children: [], required: ["cond"] },
  else: { children: [] },
  foreach: { children: EXECUTABLE, required: ["array", "item"], optional: ["index"] },
};

const NCNAME = /^[A-Za-z_][\w.-]*$/;

/**
 * What is wrong with a document by the W3C recommendation's structure: elements in the wrong place, unknown or missing
 * attributes, ids that repeat or lead nowhere, `initial` outside its state, delays that are no duration.
 * One sentence a fault with its line; empty when the document is valid.
 */
export function scxmlFaults(root: XmlElement): readonly string[] {
  const faults: string[] = [];
  const say = (at: XmlElement, text: string) => faults.push(`line ${at.at.line}: ${text}`);
  if (root.name !== "scxml") say(root, `the document element is <${root.name}>, not <scxml>`);
  if (root.attributes["xmlns"] !== SCXML_NAMESPACE) say(root, "the namespace is not W3C's SCXML");
  if (root.attributes["version"] !== "1.0") say(root, 'version must be "1.0"');
  const states = new Map<string, readonly XmlElement[]>();
  walk(root, [], (element, chain) => {
    const { id } = element.attributes;
    if (!STATES.includes(element.name) || id === undefined) return;
    if (states.has(id)) say(element, `id ${id} is used twice`);
    if (!NCNAME.test(id)) say(element, `id ${id} is not an NCName`);
    states.set(id, [...chain, element]);
  });
  walk(root, [], (element, chain) => {
    structure(element, say);
    references(element, chain, states, say);
    content(element, say);
  });
  return faults;
}

/** Throws `ChartError` (`chart.scxml-invalid`) with every fault. */
export function assertScxml(root: XmlElement): void {
  const faults = scxmlFaults(root);
  if (faults.length > 0) throw new ChartError("chart.scxml-invalid", faults.join("\n"));
}

type Say = (at: XmlElement, text: string) => void;

function structure(element: XmlElement, say: Say): void {
  const rule = RULES[element.name];
  if (!rule) return say(element, `<${element.name}> is not an element of SCXML`);
  for (const child of element.children) {
    if (isForeign(child.name) || rule.children.includes("*")) continue;
    if (!rule.children.includes(child.name)) {
      say(child, `<${child.name}> may not stand in <${element.name}>`);
    }
  }
  for (const name of rule.required ?? []) {
    if (element.attributes[name] === undefined) say(element, `<${element.name}> needs ${name}`);
  }
  const known = [...rule.required ?? [], ...rule.optional ?? []];
  for (const name of Object.keys(element.attributes)) {
    if (!isForeign(name) && !known.includes(name)) {
      say(element, `<${element.name}> has no attribute ${name}`);
    }
  }
}

function references(
  element: XmlElement,
  chain: readonly XmlElement[],
  states: ReadonlyMap<string, readonly XmlElement[]>,
  say: Say,
): void {
  for (const name of ["initial", "target"]) {
    if (element.name === "send") continue;
    for (const id of element.attributes[name]?.split(/\s+/) ?? []) {
      const found = states.get(id);
      if (!found) say(element, `${name} ${id} is no state of the document`);
      else if (name === "initial" && !found.slice(0, -1).includes(element)) {
        say(element, `initial ${id} is not inside the state`);
      }
    }
  }
  if (element.name === "transition" && ["history", "initial"].includes(chain.at(-1)?.name ?? "")) {
    const { event, cond, target } = element.attributes;
    if (event !== undefined || cond !== undefined || target === undefined) {
      say(element, `the transition of <${chain.at(-1)!.name}> has a target and nothing else`);
    }
  }
}

function content(element: XmlElement, say: Say): void {
  const a = element.attributes;
  const inner = element.children.filter((child) => STATES.includes(child.name));
  switch (element.name) {
    case "scxml":
      if (inner.length === 0) say(element, "a document has at least one state");
      break;
    case "state":
      if (a["initial"] !== undefined && inner.length === 0) {
        say(element, "initial without children");
      }
      break;
    case "history":
      if (element.children.filter((c) => c.name === "transition").length !== 1) {
        say(element, "a history state has exactly one transition");
      }
      if (a["type"] !== undefined && a["type"] !== "deep" && a["type"] !== "shallow") {
        say(element, `history is deep or shallow, not ${a["type"]}`);
      }
      break;
    case "transition":
      if (a["event"] === undefined && a["cond"] === undefined && a["target"] === undefined) {
        say(element, "a transition has an event, a cond or a target");
      }
      if (a["type"] !== undefined && a["type"] !== "internal" && a["type"] !== "external") {
        say(element, `a transition is internal or external, not ${a["type"]}`);
      }
      break;
    case "send":
      if (a["delay"] !== undefined && a["delayexpr"] !== undefined) {
        say(element, "delay and delayexpr exclude each other");
      }
      if (a["delay"] !== undefined && !/^\d*(\.\d+)?(ms|s|m|h|d)$/.test(a["delay"])) {
        say(element, `delay ${a["delay"]} is no CSS2 duration`);
      }
      break;
    case "cancel":
      if ((a["sendid"] === undefined) === (a["sendidexpr"] === undefined)) {
        say(element, "cancel has sendid or sendidexpr");
      }
      break;
  }
}

/** Visits elements of SCXML with their ancestors; elements of other namespaces are allowed and not looked into. */
function walk(
  element: XmlElement,
  chain: readonly XmlElement[],
  visit: (element: XmlElement, chain: readonly XmlElement[]) => void,
): void {
  if (isForeign(element.name)) return;
  visit(element, chain);
  for (const child of element.children) walk(child, [...chain, element], visit);
}

const isForeign = (name: string): boolean => name.includes(":");
