/** Events by their JSON text. */
import type { KernelEvent } from "../kernel/mod.ts";
import { asciiJson } from "./record.ts";

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
  /** Of events that nobody can change. */
  readonly #constants = new WeakMap<KernelEvent, Known>();

  /** The text of an event, and what it is read as. */
  saidBy(event: KernelEvent): Known {
    const constant = this.#constants.get(event);
    if (constant !== undefined) return constant;
    const known = this.of(asciiJson(event), JSON.parse);
    if (isConstant(event)) this.#constants.set(event, known);
    return known;
  }

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

/** Whether an event can never say anything else. */
const isConstant = (event: KernelEvent): boolean =>
  Object.isFrozen(event) &&
  Object.values(event).every((member) => typeof member !== "object" || member === null);
