import type { Typed } from "../../kernel/mod.ts";
import type { Driver, DriverPort, Holding } from "../driver.ts";
import { type KeyChange, KeyObservation, type ObserveOptions } from "./observe.ts";

/** The resource "observe these keys": held by an instance, which has each change as an input. */
export interface ObservedKeys extends
  Pick<
    ObserveOptions,
    "host" | "port" | "prefix" | "follow" | "mode" | "maxWaits" | "renewMs" | "connectMs"
  > {
  readonly type: "store.keys";
  readonly keys: readonly string[];
}

/** A key has this value now (hex), or none. The first one after a resource was held is what the store had already. */
export interface KeyChanged extends KeyChange {
  readonly type: "keyChanged";
}

/** The store cannot be asked any more. The resource is held still, and observes nothing: release it, or change it. */
export interface KeysLost {
  readonly type: "keysLost";
  readonly code: string;
  readonly text: string;
}

/**
 * Observes keys of TCPStores for instances of the kernel: `store.keys` resources in, `keyChanged` and `keysLost` inputs
 * out. Waiting and polling give the same inputs, and a poll that finds nothing new gives none. Two holders of equal
 * resources are told alike, each by its own observation.
 */
export class StoreKeysDriver implements Driver<never, ObservedKeys> {
  readonly name = "store-keys";
  readonly effects: readonly never[] = [];
  readonly resources: readonly ["store.keys"] = ["store.keys"];
  readonly #held = new Map<
    string,
    { readonly what: string; readonly observation: KeyObservation }
  >();
  #port: DriverPort | undefined;

  start(port: DriverPort): void {
    this.#port = port;
  }

  perform(order: { readonly effect: Typed }): never {
    throw new Error(
      `the driver of observed keys carries nothing out, and was given ${order.effect.type}`,
    );
  }

  hold({ holder, key, resource }: Holding<ObservedKeys>): void {
    const slot = `${holder} ${key}`;
    const what = JSON.stringify(resource);
    const before = this.#held.get(slot);
    if (before?.what === what) return;
    before?.observation.close();
    const { type: _, ...options } = resource;
    const tell = (event: KeyChanged | KeysLost): void => this.#port!.input(holder, { ...event });
    const observation = KeyObservation.start({
      ...options,
      onChange: (change) => tell({ type: "keyChanged", ...change }),
      onLost: ({ code, message }) => tell({ type: "keysLost", code, text: message }),
    });
    this.#held.set(slot, { what, observation });
  }

  release({ holder, key }: Holding<ObservedKeys>): void {
    const slot = `${holder} ${key}`;
    this.#held.get(slot)?.observation.close();
    this.#held.delete(slot);
  }

  async close(): Promise<void> {
    for (const { observation } of this.#held.values()) observation.close();
    this.#held.clear();
    await Promise.resolve();
  }
}
