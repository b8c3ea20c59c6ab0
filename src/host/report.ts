/** What a host found in its journal, and what it did about it. */
import type { LeftOut } from "../journal/mod.ts";
import type { EffectId, InstanceId } from "../kernel/mod.ts";

/** A call of an earlier life whose outcome had not arrived. */
export interface OwedCall {
  readonly call: EffectId;
  readonly instance: InstanceId;
  readonly effect: string;
  /** What became of it: carried out again, asked about; or its outcome came during the grace. */
  readonly done: "repeated" | "asked" | "concluded" | undefined;
}

export interface RecoveryReport {
  /** The run's name. */
  readonly run: string;
  readonly fence: number;
  /** There was no journal: this run begins here. */
  readonly fresh: boolean;
  /** The record of the snapshot or checkpoint from which the fold began; 0 for the beginning. */
  readonly from: number;
  /** Inputs replayed after it. */
  readonly replayed: number;
  readonly tookMs: number;
  /** How long nobody was there. */
  readonly downMs: number;
  /** What of the journal does not count. */
  readonly leftOut: readonly LeftOut[];
  /** Resources that were brought back. */
  readonly held: number;
  /** Timers that were due when the grace ended. */
  readonly overdue: number;
  readonly owed: readonly OwedCall[];
  /** Views that know nothing of what was before the checkpoint. */
  readonly forgetful: readonly string[];
}

/** The report in words, one fact a line. */
export function reportText(report: RecoveryReport): string {
  const { run, fence, fresh, from, replayed, tookMs, downMs, leftOut, held, owed } = report;
  if (fresh) return `run ${run} begins (fence ${fence})`;
  const lines = [
    `run ${run} goes on (fence ${fence}) after ${seconds(downMs)} away`,
    `  replayed   ${count(replayed, "input")} in ${tookMs} ms` +
    (from > 0 ? `, from the state after input ${from}` : ""),
  ];
  for (const { place, bytes, why } of leftOut) {
    lines.push(
      `  left out   ${count(bytes, "byte")} of ${place.file} from byte ${place.offset}: ` +
        (why === "torn"
          ? "a record that was never completed"
          : "written after the journal was taken over"),
    );
  }
  lines.push(`  restored   ${count(held, "resource")}`);
  lines.push(`  owed       ${count(owed.length, "call")}`);
  for (const { call, instance, effect, done } of owed) {
    lines.push(`    ${call} ${effect} of ${instance}: ${done ?? "waiting"}`);
  }
  for (const view of report.forgetful) {
    lines.push(`  the view "${view}" begins anew: it cannot read what the checkpoint has of it`);
  }
  return lines.join("\n");
}

/** What was done once peers had been listened to, on one line: said after {@link reportText}. */
export function recoveredText({ overdue, owed }: RecoveryReport): string {
  const done = owed.map(({ call, instance, effect, done }) =>
    `${effect} of ${instance} (${call}) ${done ?? "waits"}`
  );
  return `recovered: ${count(overdue, "timer")} overdue, ${count(owed.length, "call")} owed` +
    (done.length === 0 ? "" : `: ${done.join(", ")}`);
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`;
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
