/** Says on the screen how each scaling goes, whoever asked for it. */
import type { Coordinator } from "../coordinator.ts";
import { ScalingFailed } from "../host/scaler.ts";
import { duration, rankList } from "../view/mod.ts";
import type { OperationPhase, OperationRecord } from "../view/scaling.ts";
import { clock } from "./cluster-screen.ts";
import type { Paint } from "./terminal.ts";

type Scaled = Pick<Coordinator, "scaling" | "subscribe">;

/** `4 to 6 ranks`. */
const sizes = (from: number | null, to: number): string =>
  `${from === null ? "" : `${from} `}to ${to} rank${to === 1 ? "" : "s"}`;

/** The operation that a coordinator finds under way when it comes back; undefined when there is none. */
export function underWayText({ scaling }: Pick<Coordinator, "scaling">): string | undefined {
  const running = scaling?.status().running ?? null;
  if (running === null) return undefined;
  const { oldSize, target, phase, waitingFor, firstError } = running;
  const waits = waitingFor.length === 0 ? "" : `, waiting for ${rankList(waitingFor)}`;
  const why = firstError === null ? "" : `, since ${firstError.text}`;
  return `  scaling    ${sizes(oldSize, target)} was under way: ${phase}${waits}${why}; it goes on`;
}

/** What a phase means, where it is an end. */
function lineOf(record: OperationRecord, from: number | null, tookMs?: number): string {
  const what = sizes(from, record.target);
  const after = tookMs === undefined ? "" : ` after ${duration(tookMs)}`;
  const { phase, safeToDelete } = record;
  if (phase === "failed" || phase === "inDoubt") {
    return `${what}: ${phase === "failed" ? `failed${after}` : "in doubt"}. ${
      new ScalingFailed(record).message
    }`;
  }
  if (phase !== "completed") return `${what}: ${phase}`;
  const left = safeToDelete.length === 0 ? "" : `; ${rankList(safeToDelete)} left`;
  return `${what}: completed${after}${left}`;
}

/**
 * A line whenever an operation comes to another phase. Of one that runs already nobody knows here when it began. Returns how
 * to stop.
 */
export function followOperations(
  coordinator: Scaled,
  paint: Paint,
  say: (line: string) => void,
): () => void {
  const { scaling } = coordinator;
  if (scaling === null) return () => {};
  let operation = scaling.current;
  let phase: OperationPhase | undefined = operation === null ? undefined : scaling.phase(operation);
  // What has ended is not known by where it came from.
  let from = scaling.status().running?.oldSize ?? null;
  let began: number | undefined;
  const look = () => {
    const now = scaling.current;
    if (now === null) return;
    const found = scaling.phase(now);
    if (found === phase && now === operation) return;
    const record = scaling.record(now);
    if (record === undefined) return;
    if (now !== operation) [began, from] = [Date.now(), record.oldSize];
    [operation, phase] = [now, found];
    const line = lineOf(record, from, began === undefined ? undefined : Date.now() - began);
    say(`${paint.dim(clock(Date.now()))}  ${line}`);
  };
  return coordinator.subscribe(look);
}
