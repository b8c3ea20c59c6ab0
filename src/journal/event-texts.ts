/** Events by their JSON text. */
import type { KernelEvent } from "../kernel/mod.ts";

interface Known {
  readonly text: string;
  readonly event: KernelEvent;
}

const REMEMBERED = 10_000;
const LONGEST = 400;

/**
 * A run says the same few things again and again, so short events are remembered by their text: the same text is the same event object, and
 * need not be parsed anew. Events are never changed by anyone.
 */
export class EventTexts {
  readonly #known = new Map<string, Known>();

  /** The event with this text; `parse` makes it when it is new. */
  of(text: string, parse: (text: string) => KernelEvent): Known {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const event = parse(text);
    if (text.length > LONGEST) return { text, event };
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    // A copy: a text that was cut out of a longer one would keep all of that.
    const found = { text: ` ${text}`.slice(1), event };
    this.#known.set(found.text, found);
    return found;
  }
}
