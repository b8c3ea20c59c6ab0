/** Watches signals for many members with one listener each: a signal warns of a leak when it has more than a few. */
export class AbortWatch<T> {
  readonly #onAbort: (member: T) => void;
  readonly #watched = new Map<AbortSignal, { members: Set<T>; listener: () => void }>();

  constructor(onAbort: (member: T) => void) {
    this.#onAbort = onAbort;
  }

  add(signal: AbortSignal, member: T): void {
    const watched = this.#watched.get(signal);
    if (watched !== undefined) return void watched.members.add(member);
    const members = new Set([member]);
    const listener = (): void => {
      for (const each of [...members]) this.#onAbort(each);
    };
    this.#watched.set(signal, { members, listener });
    signal.addEventListener("abort", listener, { once: true });
  }

  delete(signal: AbortSignal, member: T): void {
    const watched = this.#watched.get(signal);
    if (watched === undefined) return;
    watched.members.delete(member);
    if (watched.members.size > 0) return;
    signal.removeEventListener("abort", watched.listener);
    this.#watched.delete(signal);
  }
}
