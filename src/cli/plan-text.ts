import type { CommandLine, Finding, Preflight, ProcessReport } from "../planning/mod.ts";
import { shellQuoted } from "../planning/mod.ts";
import type { Paint } from "./terminal.ts";
import { columns, wrapped } from "./text.ts";

/** A preflight as a page for a terminal: what runs where, why, what was found, and the commands. */
export function planText(plan: Preflight, paint: Paint, width: number): string {
  const sections = [
    verdict(plan, paint),
    plan.processes.length ? table(plan, paint) : [],
    plan.placement ? placement(plan.placement, paint) : [],
    plan.processes.length ? why(plan.processes, paint, width) : [],
    findings(plan, paint, width),
    plan.ok ? commands(plan.processes, paint) : [],
  ];
  return sections.filter((s) => s.length > 0).map((s) => s.join("\n")).join("\n\n") + "\n";
}

function verdict({ ok, summary, findings }: Preflight, paint: Paint): string[] {
  const count = (level: Finding["level"], name: string) => {
    const n = findings.filter((f) => f.level === level).length;
    return n === 0 ? [] : [`${n} ${name}${n === 1 ? "" : "s"}`];
  };
  const found = [...count("error", "error"), ...count("warning", "warning")].join(", ");
  const mark = !ok
    ? paint.red("✗ cannot start")
    : found
    ? paint.yellow("! can start")
    : paint.green("✓ can start");
  return [`${paint.bold(summary)}   ${mark}${found ? paint.dim(`  (${found})`) : ""}`];
}

function table(plan: Preflight, paint: Paint): string[] {
  const { nodes, processes } = plan;
  const header = ["NODE", "ADDRESS", "RANKS", "DEVICES", "ROLE", "MODE", "LISTENS"];
  const rows = nodes.flatMap((node) => {
    const here = processes.filter((p) => p.node === node.name);
    const name = node.here && nodes.length > 1 ? `${node.name} (this host)` : node.name;
    const address = node.address ?? "";
    if (here.length === 0) return [[name, address, placedRanks(plan, node.name)]];
    return here.map((p, i) => [
      i === 0 ? name : "",
      i === 0 ? address : "",
      p.topology.backend === "ray" ? placedRanks(plan, node.name) : p.ranks || "none",
      devicesText(p),
      roleText(p),
      p.topology.mode,
      listens(p),
    ]);
  });
  return columns(
    [header, ...rows],
    (cell, row, column) => row === 0 ? paint.dim(cell) : column === 0 ? paint.bold(cell) : cell,
  );
}

const placedRanks = ({ placement }: Preflight, node: string): string =>
  placement?.find((n) => n.node === node)?.ranks.join(" ") || "none";

const MOST_SHOWN = 30;
function devicesText({ devices, topology }: ProcessReport): string {
  if (topology.backend === "ray") return "placed by Ray";
  if (devices === null) return "";
  const text = devices.map((ids) => ids.join(",")).join(" | ");
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN - 1)}…` : text;
}

const roleText = ({ topology }: ProcessReport): string =>
  topology.role === "engines"
    ? "engines"
    : topology.role === "supervisor"
    ? `${topology.children.length} servers`
    : topology.coordinator
    ? "front-end, coordinator"
    : "front-end";

function listens({ ports, topology, ipcPathBytes }: ProcessReport): string {
  if (topology.role === "engines") return "nothing (dials the head)";
  const tcp = groupPorts(ports);
  return [...tcp, ...(ipcPathBytes ? [`ipc ${ipcPathBytes}/107 bytes`] : [])].join(", ");
}

function groupPorts(ports: ProcessReport["ports"]): string[] {
  const http = ports.filter((p) => p.what === "http").map((p) => p.port);
  const handshake = ports.filter((p) => p.what === "handshake").map((p) => p.port);
  const range = (list: number[]) => list.length > 1 ? `${list[0]}-${list.at(-1)}` : String(list[0]);
  return [
    ...(handshake.length ? [`handshake ${range(handshake)}`] : []),
    ...(http.length ? [`http ${range(http)}`] : []),
  ];
}

function placement(nodes: NonNullable<Preflight["placement"]>, paint: Paint): string[] {
  const rows = nodes.map((n) => [
    n.master ? `${n.node} (master)` : n.node,
    `${n.free} of ${n.total}`,
    String(n.taken),
    n.ranks.join(" ") || "none",
    n.why,
  ]);
  return columns(
    [["PLACEMENT", "FREE", "TAKEN", "RANKS", "WHY"], ...rows],
    (cell, row, column) => row === 0 ? paint.dim(cell) : column === 0 ? paint.bold(cell) : cell,
  );
}

function why(processes: readonly ProcessReport[], paint: Paint, width: number): string[] {
  const reasons = new Map<string, string[]>();
  for (const p of processes) {
    const key = p.topology.why.join("\n");
    const who = nameOf(p, processes);
    reasons.set(key, [...reasons.get(key) ?? [], who]);
  }
  const lines = [paint.dim("WHY")];
  for (const [text, who] of reasons) {
    lines.push(paint.bold(fewNames(who)));
    for (const sentence of text.split("\n")) {
      const [first, ...rest] = wrapped(sentence, width - 4);
      lines.push(`  ${paint.dim("·")} ${first}`, ...rest.map((line) => `    ${line}`));
    }
  }
  return lines;
}

/** The node, and what tells its processes apart where there are several. */
function nameOf({ node, ranks }: ProcessReport, all: readonly ProcessReport[]): string {
  if (all.filter((p) => p.node === node).length === 1) return node;
  return `${node}, ${
    ranks === "" ? "the front-end" : `rank${ranks.includes("-") ? "s" : ""} ${ranks}`
  }`;
}

const fewNames = (names: readonly string[]): string =>
  names.length <= 4
    ? names.join(", ")
    : `${names.slice(0, 3).join("; ")} and ${names.length - 3} more`;

function findings({ findings: list, nodes }: Preflight, paint: Paint, width: number): string[] {
  if (list.length === 0) return [];
  const mark = {
    error: paint.red("✗"),
    warning: paint.yellow("!"),
    note: paint.cyan("i"),
  };
  const lines = [paint.dim("FOUND")];
  for (const f of list) {
    const where = f.node === null || nodes.length === 1 ? "" : `${f.node}: `;
    const [first, ...rest] = wrapped(`${where}${f.message}`, width - 4);
    lines.push(`${mark[f.level]} ${first}`, ...rest.map((line) => `  ${line}`));
    if (f.fix !== undefined) {
      for (const line of wrapped(f.fix, width - 6)) lines.push(paint.dim(`  → ${line}`));
    }
    lines.push(...(f.level === "note" ? [] : [paint.dim(`    ${f.code}`)]));
  }
  return lines;
}

/** One command a process; long ones are continued on the next line, so that they can be copied as they are. */
function commands(processes: readonly ProcessReport[], paint: Paint): string[] {
  const lines = [paint.dim("COMMANDS")];
  for (const p of processes) {
    lines.push(`${paint.bold(`# on ${nameOf(p, processes)}`)}`, ...continued(p.command));
  }
  return lines;
}

const MOST_COLUMNS = 100;
function continued({ env, argv }: CommandLine): string[] {
  const words = [
    ...Object.entries(env).map(([name, value]) => `${name}=${shellQuoted(value)}`),
    ...argvGroups(argv),
  ];
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(word);
    else if (last.length + word.length + 3 > MOST_COLUMNS) lines.push(`  ${word}`);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line, i) => i < lines.length - 1 ? `${line} \\` : line);
}

/** A flag and its value stay on one line. */
function argvGroups(argv: readonly string[]): string[] {
  const groups: string[] = [];
  argv.forEach((word, i) => {
    const isValue = i > 0 && argv[i - 1]!.startsWith("--") && !word.startsWith("--");
    if (isValue) groups[groups.length - 1] += ` ${shellQuoted(word)}`;
    else groups.push(shellQuoted(word));
  });
  return groups;
}
