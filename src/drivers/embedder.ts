/** Tells whoever embeds the coordinator what it announces, once that is safely in the journal. */
import type { Announce } from "../machines/mod.ts";
import type { Driver, Order } from "./driver.ts";

export class EmbedderDriver implements Driver<Announce, never> {
  readonly name = "embedder";
  readonly effects = ["announce"] as const;
  readonly resources = [] as const;
  readonly #listen: (what: Announce["what"]) => void;

  constructor(listen: (what: Announce["what"]) => void) {
    this.#listen = listen;
  }

  start(): void {}

  perform({ effect }: Order<Announce>): void {
    this.#listen(effect.what);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
