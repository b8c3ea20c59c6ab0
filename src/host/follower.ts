/** What the host's steps come to for those who embed it: a view of the host, so that nothing is missed. */
import type { Applied, Json } from "../kernel/mod.ts";
import { type ClusterEvent, eventsOf, StatusFold } from "../view/mod.ts";
import type { View } from "./views.ts";

export class Follower implements View {
  readonly fold: StatusFold = new StatusFold();
  readonly listeners: Set<(event: ClusterEvent) => void> = new Set();
  readonly version: number = this.fold.version;
  readonly #announced = new Set<string>();
  readonly #waiters = new Set<() => void>();

  apply(step: Applied): void {
    if (this.listeners.size === 0) this.fold.apply(step);
    else {
      for (const event of eventsOf(this.fold, step)) {
        for (const listener of this.listeners) listener(event);
      }
    }
    this.wake();
  }

  save(): Json {
    return this.fold.save();
  }

  load(saved: Json): void {
    this.fold.load(saved);
  }

  announce(what: string): void {
    this.#announced.add(what);
    this.wake();
  }

  announced(what: string): boolean {
    return this.#announced.has(what);
  }

  /** Lets everybody who waits look again. */
  wake(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }

  /** Resolves when `done` says so; rejects with what it throws, with what `broken` returns, or when `signal` is aborted. */
  until(
    done: () => boolean,
    broken: () => Error | undefined,
    signal?: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        this.#waiters.delete(look);
        signal?.removeEventListener("abort", abort);
        act();
      };
      const abort = () => settle(() => reject(signal!.reason));
      const look = () => {
        try {
          if (done()) return settle(resolve);
          const why = broken();
          if (why !== undefined) settle(() => reject(why));
        } catch (error) {
          settle(() => reject(error));
        }
      };
      this.#waiters.add(look);
      if (signal?.aborted) return abort();
      signal?.addEventListener("abort", abort);
      look();
    });
  }

  /** What happens from now on, until `closed`. */
  async *events(closed: () => boolean): AsyncGenerator<ClusterEvent, void, void> {
    const queue: ClusterEvent[] = [];
    let wake = () => {};
    const listener = (event: ClusterEvent) => {
      queue.push(event);
      wake();
    };
    const waiter = () => wake();
    this.listeners.add(listener);
    this.#waiters.add(waiter);
    try {
      while (true) {
        while (queue.length > 0) yield queue.shift()!;
        if (closed()) return;
        await new Promise<void>((resolve) => wake = resolve);
      }
    } finally {
      this.listeners.delete(listener);
      this.#waiters.delete(waiter);
    }
  }
}
