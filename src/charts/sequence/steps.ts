/**
 * What a sequence diagram shows: a list of steps among lifelines. The checker's counterexamples, simulations and
 * production journals are all brought into this form, and the writers know nothing else.
 */

/** Who takes part, left to right as first given or first named. */
export interface Lifeline {
  readonly id: string;
  /** What is written at its head; the id when not given. */
  readonly title?: string;
}

/** What became of a message. */
export type Fate = "delivered" | "lost" | "duplicate" | "late" | "refused";

interface Common {
  /** The position in the run, for links back to it. */
  readonly seq?: number;
  /** Wall-clock milliseconds. */
  readonly at?: number;
  /** States that lifelines are in after this step, shown where they changed. */
  readonly states?: Readonly<Record<string, string>>;
}

export type SequenceStep =
  & Common
  & (
    | {
      readonly kind: "message";
      readonly from: string;
      readonly to: string;
      readonly label: string;
      readonly fate?: Fate;
    }
    /** Something that one lifeline does alone: a decision, a command, a change of state. */
    | { readonly kind: "local"; readonly on: string; readonly label: string }
    | { readonly kind: "timeout"; readonly on: string; readonly label: string }
    | { readonly kind: "crash"; readonly on: string; readonly label?: string }
    | { readonly kind: "restart"; readonly on: string; readonly label?: string }
    | { readonly kind: "note"; readonly over: readonly string[]; readonly text: string }
    /** Time in which nothing happened, drawn as a break. */
    | { readonly kind: "gap"; readonly text: string }
  );

/** The lifelines of a diagram: those given first, then those that only the steps name. */
export function lifelinesOf(
  steps: readonly SequenceStep[],
  given: readonly Lifeline[] = [],
): readonly Lifeline[] {
  const all = new Map(given.map((line) => [line.id, line]));
  for (const step of steps) {
    for (const id of [...namedBy(step), ...Object.keys(step.states ?? {})]) {
      if (!all.has(id)) all.set(id, { id });
    }
  }
  return [...all.values()];
}

function namedBy(step: SequenceStep): readonly string[] {
  switch (step.kind) {
    case "message":
      return [step.from, step.to];
    case "note":
      return step.over;
    case "gap":
      return [];
    default:
      return [step.on];
  }
}

/** The sign and the words of a step that belongs to one lifeline. */
export function soloText(
  step: Extract<SequenceStep, { on: string }>,
): { readonly sign: string; readonly text: string } {
  switch (step.kind) {
    case "local":
      return { sign: "●", text: step.label };
    case "timeout":
      return { sign: "◷", text: `timeout ${step.label}` };
    case "crash":
      return { sign: "✗", text: step.label === undefined ? "crash" : `crash: ${step.label}` };
    case "restart":
      return { sign: "↻", text: step.label === undefined ? "restart" : `restart: ${step.label}` };
  }
}

/** `INIT (lost)`: the label of a message with its fate in words, because colour alone is not read by everyone. */
export function messageText(step: Extract<SequenceStep, { kind: "message" }>): string {
  const fate = step.fate ?? "delivered";
  return fate === "delivered" ? step.label : `${step.label} (${fate})`;
}

/** `rank/0 ready, rank/1 late`: the states that a step led to. */
export function statesText(step: SequenceStep, titles: ReadonlyMap<string, string>): string {
  return Object.entries(step.states ?? {})
    .map(([id, state]) => `${titles.get(id) ?? id} ${state}`).join(", ");
}
