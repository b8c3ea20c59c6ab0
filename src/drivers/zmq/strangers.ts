/** Counts what comes from nobody we know, and reports it at a bounded rate, so that a flood fills nothing. */

/** What was wrong with it. The set is closed, so that counting needs no more memory under a flood. */
export type StrangerKind =
  /** A connection that never spoke ZMTP 3: HTTP, a port scan, an old protocol. */
  | "connection"
  /** The number of frames. */
  | "frames"
  /** An identity that is not two bytes. */
  | "identity"
  /** A rank that nobody expects here. */
  | "rank"
  /** A message that could not be read, where its sender has no name. */
  | "message"
  /** More of one rank than anybody has to say. */
  | "flood"
  /** An answer to a question that nobody asks. */
  | "reply";

/** So many of one kind since the last report, and the first of them in words. */
export type Strangers = {
  readonly kind: StrangerKind;
  readonly count: number;
  readonly sample: string;
};

/** Reports the first of a kind at once, and the kind again at most once an interval. */
export class StrangerCounter {
  readonly #report: (strangers: Strangers) => void;
  readonly #intervalMs: number;
  readonly #pending = new Map<StrangerKind, { count: number; sample: string }>();
  readonly #resting = new Map<StrangerKind, ReturnType<typeof setTimeout>>();

  constructor(report: (strangers: Strangers) => void, intervalMs = 1_000) {
    this.#report = report;
    this.#intervalMs = intervalMs;
  }

  /** One more of a kind. `sample` is made only when it will be shown. */
  count(kind: StrangerKind, sample: () => string): void {
    const pending = this.#pending.get(kind);
    if (pending !== undefined) pending.count++;
    else if (this.#resting.has(kind)) {
      this.#pending.set(kind, { count: 1, sample: sample().slice(0, 200) });
    } else {
      this.#rest(kind);
      this.#report({ kind, count: 1, sample: sample().slice(0, 200) });
    }
  }

  /** Reports what is pending and stops. */
  close(): void {
    for (const timer of this.#resting.values()) clearTimeout(timer);
    this.#resting.clear();
    for (const [kind, pending] of this.#pending) this.#report({ kind, ...pending });
    this.#pending.clear();
  }

  #rest(kind: StrangerKind): void {
    const timer = setTimeout(() => {
      this.#resting.delete(kind);
      const pending = this.#pending.get(kind);
      if (pending === undefined) return;
      this.#pending.delete(kind);
      this.#rest(kind);
      this.#report({ kind, ...pending });
    }, this.#intervalMs);
    this.#resting.set(kind, timer);
  }
}
