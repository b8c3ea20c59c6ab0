/** The cluster on a terminal: a line a rank, drawn again as it changes; without a terminal, a line an event. */
import {
  type ClusterEvent,
  type ClusterStatus,
  countsText,
  duration,
  type FailureRecord,
  rankList,
} from "../view/mod.ts";
import { LiveBlock, type Paint, type Terminal } from "./terminal.ts";

const GLYPHS: Readonly<Record<string, string>> = {
  awaited: "·",
  connected: "◐",
  ready: "●",
  adopting: "◐",
  late: "✗",
  lost: "✗",
  stopped: "○",
  restarted: "✗",
  restarting: "↻",
  joining: "◌",
  leaving: "◑",
  left: "○",
};

const colour = (paint: Paint, state: string): (text: string) => string =>
  state === "ready"
    ? paint.green
    : ["connected", "adopting", "leaving", "joining", "restarting"].includes(state)
    ? paint.yellow
    : ["awaited", "stopped", "left"].includes(state)
    ? paint.dim
    : paint.red;

/** The time of day, to the millisecond. */
export const clock = (at: number): string => new Date(at).toISOString().slice(11, 23);

/** One line for each rank: state, since when, process, blocks. At most `most` ranks; the rest are counted by state. */
export function rankLines(
  status: ClusterStatus,
  now: number,
  paint: Paint,
  most = 16,
  steps: ReadonlyMap<number, string> = new Map(),
): string[] {
  const shown = status.ranks.length <= most ? status.ranks : status.ranks.slice(0, most);
  const width = String(status.ranks.at(-1)?.rank ?? 0).length;
  const lines = shown.map((r) => {
    const paintState = colour(paint, r.state);
    const step = r.state === "ready" ? undefined : steps.get(r.rank);
    const facts = [
      step ?? "",
      r.pid === null ? "" : `pid ${r.pid}`,
      r.blocks === null ? "" : `${r.blocks} blocks`,
      r.takeovers === 0 ? "" : `${r.takeovers} takeovers`,
      r.refused === null ? "" : paint.yellow(`refused: ${r.refused.reason}`),
    ].filter((f) => f !== "").join(paint.dim(" · "));
    return `  rank ${String(r.rank).padStart(width)}  ${
      paintState(`${GLYPHS[r.state]} ${r.state.padEnd(9)}`)
    }  ` +
      `${paint.dim(`for ${duration(Math.max(0, now - r.since))}`.padEnd(12))}  ${facts}`;
  });
  if (status.ranks.length > most) {
    const rest = new Map<string, number>();
    for (const r of status.ranks.slice(most)) rest.set(r.state, (rest.get(r.state) ?? 0) + 1);
    const counts = [...rest].map(([state, n]) => `${n} ${state}`).join(", ");
    lines.push(paint.dim(`  and ${status.ranks.length - most} more: ${counts}`));
  }
  return lines;
}

/** The head line of the block. */
export function headLine(status: ClusterStatus, now: number, paint: Paint): string {
  const phase = status.phase === "formed"
    ? paint.green(status.phase)
    : status.phase === "failed"
    ? paint.red(status.phase)
    : paint.cyan(status.phase);
  return `${paint.bold("cluster")} ${phase}  ${countsText(status.ranks)}  ` +
    paint.dim(`${duration(Math.max(0, now - status.startedAt))} since the start`);
}

/** A failure as a person reads it. */
export function failureLines(record: FailureRecord, paint: Paint): string[] {
  const lines = [`${paint.red("✗")} ${paint.bold(record.sentence)}`, `  ${record.remedy}`];
  if (record.upstream !== null) lines.push(paint.dim(`  vLLM says: ${record.upstream}`));
  if (record.tail.length > 0) {
    lines.push(paint.dim("  its last lines:"));
    for (const line of record.tail.slice(-10)) lines.push(`  ${paint.dim("│")} ${line}`);
  }
  if (record.missing.length > 0 && record.code !== "engine-exited") {
    lines.push(paint.dim("  not ready:"));
    for (const { rank, state } of record.missing.slice(0, 32)) {
      lines.push(`  ${paint.dim("│")} rank ${rank}  ${colour(paint, state)(state)}`);
    }
    if (record.missing.length > 32) {
      lines.push(paint.dim(`  │ and ${record.missing.length - 32} more`));
    }
  }
  lines.push(paint.dim(`  code ${record.code} · input ${record.seq}`));
  return lines;
}

/** A joiner's launch carries its operation's id; on a screen its first digits do. */
const shortName = (launch: string): string =>
  launch.replace(/-([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{22}$/, "-$1");

/** An event as one line. */
export function eventLine(event: ClusterEvent, paint: Paint): string | undefined {
  const at = paint.dim(clock(event.at));
  switch (event.type) {
    case "phase":
      return `${at}  cluster ${event.phase}`;
    case "rank":
      return `${at}  rank ${event.rank} ${colour(paint, event.state)(event.state)}`;
    case "refused":
      return `${at}  ${
        paint.yellow("refused")
      } rank ${event.rank}: ${event.reason} (${event.text})`;
    case "strangers":
      return `${at}  ${paint.yellow("strangers")} ${event.count} × ${event.kind}: ${event.sample}`;
    case "process":
      return event.state === "running"
        ? `${at}  process ${shortName(event.launch)} runs, pid ${event.pid}`
        : undefined;
    case "failure":
      return undefined;
  }
}

/** What the cluster came to. */
export function summaryLines(status: ClusterStatus, paint: Paint, adopted = false): string[] {
  const { blocks } = status;
  const took = status.since - status.startedAt;
  const serving = status.ranks.filter((r) => r.state === "ready").map((r) => r.rank);
  const size = adopted ? serving.length : status.formedUp;
  const ranks = `${size} rank${size === 1 ? "" : "s"}`;
  return [
    `${paint.green("✓")} ${
      paint.bold(adopted ? `${ranks} serve on` : `${ranks} formed up in ${duration(took)}`)
    }`,
    ...(serving.length === size || serving.length === 0
      ? []
      : [`  ${rankList(serving)} serve${serving.length === 1 ? "s" : ""} now`]),
    ...(blocks === null ? [] : [
      `  KV cache blocks: ${blocks.sum} in all, ${
        blocks.min === blocks.max ? `${blocks.min} each` : `${blocks.min} to ${blocks.max} a rank`
      }`,
    ]),
  ];
}

/** Where the cluster is spoken to, while it serves. */
export const addressLines = (status: ClusterStatus, paint: Paint): string[] =>
  Object.entries(status.endpoints).map(([name, parts]) =>
    paint.dim(
      `  ${name}: ${
        Object.entries(parts).map(([part, e]) => part === "bind" ? e : `${part} ${e}`).join(", ")
      }`,
    )
  );

/** Who spoke to it and does not belong to it. */
export const strangerLines = (status: ClusterStatus, paint: Paint): string[] =>
  status.strangers.map((s) =>
    paint.yellow(`  strangers: ${s.count} × ${s.kind}, for example ${s.sample}`)
  );

/** Follows a cluster on the terminal until it is told to stop. */
export class ClusterScreen {
  readonly #terminal: Terminal;
  readonly #status: () => ClusterStatus;
  readonly #block: LiveBlock;
  readonly #tick: ReturnType<typeof setInterval>;
  readonly #steps = new Map<number, string>();
  #ended = false;

  constructor(terminal: Terminal, status: () => ClusterStatus) {
    this.#terminal = terminal;
    this.#status = status;
    this.#block = new LiveBlock(terminal);
    this.#tick = setInterval(() => this.#block.draw(this.#lines()), 100);
  }

  /** Shows an event: as a line where there is no live screen, or where it should stay in view. */
  event(event: ClusterEvent): void {
    if (this.#ended) return;
    const stays = event.type === "refused" || event.type === "strangers";
    const line = eventLine(event, this.#terminal.paint);
    if (line === undefined) return;
    if (!this.#terminal.live) this.#block.print([line], []);
    // Everything else is drawn at the next tick: a thousand ranks may change within one.
    else if (stays) this.#block.print([line], this.#lines());
  }

  /** A rank that starts tells how far it has come. */
  step(rank: number, step: string): void {
    if (this.#ended || this.#steps.get(rank) === step) return;
    this.#steps.set(rank, step);
    const { live, paint } = this.#terminal;
    if (!live) this.#block.print([`${paint.dim(clock(Date.now()))}  rank ${rank}: ${step}`], []);
  }

  /** A line that stays, above the ranks. */
  note(text: string): void {
    if (!this.#ended) this.#block.print([text], this.#lines());
  }

  /** Draws the last state and leaves it on the screen. */
  end(): void {
    this.#ended = true;
    clearInterval(this.#tick);
    this.#block.end(this.#lines());
  }

  #lines(): string[] {
    const status = this.#status();
    const now = Date.now();
    const { paint } = this.#terminal;
    return [headLine(status, now, paint), ...rankLines(status, now, paint, 16, this.#steps)];
  }
}
