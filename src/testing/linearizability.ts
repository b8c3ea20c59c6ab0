/**
 * Is a recorded concurrent history linearizable: can every operation be given one moment between its call and its
 * return, so that one after another they are what a sequential model allows? (Wing and Gong's search, with Lowe's memo of
 * what was tried: sets of operations already placed, and the state after them.)
 */

/** One operation of a history. Times are any numbers that grow; what returned before another was called came before it. */
export interface RecordedOperation<Input, Output> {
  readonly input: Input;
  /** What it answered; `undefined` for one whose answer nobody saw, which may have happened or not. */
  readonly output: Output | undefined;
  readonly called: number;
  /** `Infinity` for one that never returned: it may happen at any time after its call. */
  readonly returned: number;
}

/** What one object does when operations come one at a time. */
export interface SequentialModel<State, Input, Output> {
  readonly initial: State;
  /**
   * The state after the operation, or `undefined` if the model does not answer so, or cannot answer now. An `output` of
   * `undefined` was not seen: any answer goes.
   */
  apply(state: State, input: Input, output: Output | undefined): State | undefined;
  /** Text that is the same for equal states and only for them. */
  key(state: State): string;
}

/** A verdict: an order that explains the history, or the longest that was found and what none of could follow. */
export type Linearization<Input, Output> =
  | { readonly linearizable: true; readonly order: readonly RecordedOperation<Input, Output>[] }
  | {
    readonly linearizable: false;
    readonly longest: readonly RecordedOperation<Input, Output>[];
    readonly stuck: readonly RecordedOperation<Input, Output>[];
  };

/** Looks for an order that explains the history. */
export function linearize<State, Input, Output>(
  history: readonly RecordedOperation<Input, Output>[],
  model: SequentialModel<State, Input, Output>,
): Linearization<Input, Output> {
  const operations = [...history].sort((a, b) => a.called - b.called);
  const placed = new Uint8Array(operations.length);
  const order: number[] = [];
  const states: State[] = [model.initial];
  const tried = new Set<string>();
  let longest: number[] = [];
  /** Where to go on looking among the candidates of each depth. */
  const next: number[] = [0];
  let first = 0;
  const owed = operations.filter((each) => each.returned < Number.POSITIVE_INFINITY).length;
  let paid = 0;

  for (;;) {
    if (paid === owed) {
      return { linearizable: true, order: order.map((i) => operations[i]!) };
    }
    while (first < operations.length && placed[first] === 1) first++;
    const found = candidate(next.at(-1)!);
    if (found !== undefined) {
      const { index, state } = found;
      next[next.length - 1] = index + 1;
      placed[index] = 1;
      const seen = `${signature()}|${model.key(state)}`;
      if (tried.has(seen)) {
        placed[index] = 0;
        continue;
      }
      tried.add(seen);
      order.push(index);
      states.push(state);
      next.push(0);
      if (operations[index]!.returned < Number.POSITIVE_INFINITY) paid++;
      if (order.length > longest.length) longest = [...order];
      continue;
    }
    const back = order.pop();
    if (back === undefined) return refuted();
    if (operations[back]!.returned < Number.POSITIVE_INFINITY) paid--;
    placed[back] = 0;
    first = Math.min(first, back);
    states.pop();
    next.pop();
  }

  /** The next operation that may come now: called before anything unplaced has returned, and allowed by the model. */
  function candidate(from: number): { index: number; state: State } | undefined {
    let horizon = Number.POSITIVE_INFINITY;
    const end: number[] = [];
    for (let i = first; i < operations.length; i++) {
      const each = operations[i]!;
      if (each.called > horizon) break;
      if (placed[i] === 1) continue;
      horizon = Math.min(horizon, each.returned);
      end.push(i);
    }
    for (const i of end) {
      const each = operations[i]!;
      if (i < from || each.called > horizon) continue;
      const state = model.apply(states.at(-1)!, each.input, each.output);
      if (state !== undefined) return { index: i, state };
    }
    return undefined;
  }

  /** Which operations are placed: all before `first`, and these. */
  function signature(): string {
    let low = first;
    while (low < operations.length && placed[low] === 1) low++;
    let text = String(low);
    for (let i = low; i < operations.length; i++) if (placed[i] === 1) text += `,${i}`;
    return text;
  }

  function refuted(): Linearization<Input, Output> {
    const done = new Set(longest);
    const left = operations.filter((_, i) => !done.has(i));
    const horizon = Math.min(...left.map((each) => each.returned));
    return {
      linearizable: false,
      longest: longest.map((i) => operations[i]!),
      stuck: left.filter((each) => each.called <= horizon),
    };
  }
}
