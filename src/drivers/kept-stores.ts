import type { KeeperClient } from "./keeper/mod.ts";
import { OwnStores, type StoreHost } from "./scaling-store.ts";
import type { HostedStoreInfo } from "./tcpstore/mod.ts";

const KIND = "tcpstore";

/**
 * Stores that the keeper of local engines hosts, so that they outlive this coordinator: torch's clients never connect
 * again. Where there is no keeper (every engine is remote) they are stores of this process.
 */
export class KeptStores implements StoreHost {
  readonly #keeper: () => Promise<KeeperClient | undefined>;
  readonly #own: StoreHost;

  constructor(
    keeper: () => Promise<KeeperClient | undefined>,
    own: StoreHost = new OwnStores(),
  ) {
    this.#keeper = keeper;
    this.#own = own;
  }

  /** The name is the call's id, the same in every life: asked again after a crash, the keeper answers with what runs. */
  async serve(name: string): Promise<number> {
    const keeper = await this.#keeper();
    if (keeper === undefined) return await this.#own.serve(name);
    const { info } = await keeper.startService(`store/${name}`, KIND, null);
    return (info as HostedStoreInfo).port;
  }

  /** Ends a store, also one that an earlier coordinator had the keeper begin. */
  async stop(port: number): Promise<void> {
    const keeper = await this.#keeper();
    const kept = (await keeper?.services() ?? []).find(({ kind, info }) =>
      kind === KIND && (info as HostedStoreInfo).port === port
    );
    if (kept === undefined) return await this.#own.stop(port);
    await keeper!.stopService(kept.id);
  }

  /** Stores of this process end; the keeper's stay for as long as its lease lasts. */
  async close(): Promise<void> {
    await this.#own.close();
  }
}
