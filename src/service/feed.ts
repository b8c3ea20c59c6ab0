/** What happened, numbered, for those who come back for the rest: the newest events are kept. */

export interface FeedEvent {
  /** Grows by one. */
  readonly id: number;
  readonly type: string;
  readonly data: unknown;
}

export class Feed {
  readonly #capacity: number;
  #events: FeedEvent[] = [];
  #next = 1;
  readonly #listeners = new Set<(event: FeedEvent) => void>();

  constructor(capacity = 4096) {
    this.#capacity = capacity;
  }

  push(type: string, data: unknown): void {
    const event: FeedEvent = { id: this.#next++, type, data };
    this.#events.push(event);
    if (this.#events.length > this.#capacity) this.#events.shift();
    for (const listener of this.#listeners) listener(event);
  }

  /** The id of the newest event; 0 before the first. */
  get last(): number {
    return this.#next - 1;
  }

  /** What came after an id; undefined when some of it is no longer known, or the id is from another life. */
  since(id: number): readonly FeedEvent[] | undefined {
    if (id > this.last) return undefined;
    const first = this.#events[0]?.id ?? this.#next;
    return id + 1 < first ? undefined : this.#events.filter((event) => event.id > id);
  }

  listen(listener: (event: FeedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
