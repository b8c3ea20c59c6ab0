/** A queue whose two ends cost the same however long it is (an array's `shift` moves all that is left). */
export class Fifo<T> {
  #items: T[];
  #head = 0;

  constructor(items: readonly T[] = []) {
    this.#items = [...items];
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head]!;
    this.#items[this.#head++] = undefined as T;
    if (this.#head > 32 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  toArray(): T[] {
    return this.#items.slice(this.#head);
  }
}
