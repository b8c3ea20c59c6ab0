/** The ROUTER of rank 0 that greets new ranks while an operation runs (wire spec, 7.6). */
import type { ScaleUpReply, ScaleUpSocket, SendScaleUpInit } from "../machines/effects/scaling.ts";
import type { Init, ScaleUpInit, WireRank } from "../protocol/mod.ts";
import type { Driver, DriverPort, Holding, Order } from "./driver.ts";
import { bindHandshakeRouter, type HandshakeRouter } from "./zmq/handshake-router.ts";

interface Open {
  readonly init: Init | ScaleUpInit;
  router: HandshakeRouter | undefined;
  closed: boolean;
}

export class ScaleUpSocketDriver implements Driver<SendScaleUpInit, ScaleUpSocket> {
  readonly name = "scale-up-socket";
  readonly effects = ["scaleUp.init"] as const;
  readonly resources = ["socket.scaleUp"] as const;
  #port: DriverPort | undefined;
  #open = new Map<string, Open>();

  start(port: DriverPort): void {
    this.#port = port;
  }

  perform({ from, effect }: Order<SendScaleUpInit>): void {
    const open = this.#open.get(from);
    void open?.router?.sendInit(effect.rank as WireRank, open.init);
  }

  hold({ holder, resource }: Holding<ScaleUpSocket>): void {
    if (this.#open.has(holder)) return;
    const open: Open = { init: initOf(resource.reply), router: undefined, closed: false };
    this.#open.set(holder, open);
    void this.#bind(holder, resource.bind, open);
  }

  release({ holder }: Holding<ScaleUpSocket>): void {
    const open = this.#open.get(holder);
    this.#open.delete(holder);
    if (open === undefined) return;
    open.closed = true;
    open.router?.close();
  }

  close(): Promise<void> {
    for (const open of this.#open.values()) {
      open.closed = true;
      open.router?.close();
    }
    this.#open.clear();
    return Promise.resolve();
  }

  async #bind(holder: string, address: string, open: Open): Promise<void> {
    const port = this.#port!;
    try {
      const router = await bindHandshakeRouter({
        address,
        // Which ranks are awaited is the machine's matter; it refuses the others by name.
        expects: () => true,
        onMessage: (rank, message) =>
          port.input(
            holder,
            message.type === "unknown-status"
              ? { type: "malformed", rank, reason: `there is no status ${message.status}` }
              : {
                type: message.type,
                rank,
                local: message.local,
                headless: message.headless,
                ...(message.type === "ready" ? { hash: message.parallelConfigHash ?? null } : {}),
              },
          ),
        onMalformed: (rank, refusal) =>
          port.input(holder, { type: "malformed", rank, reason: refusal.text }),
        onStrangers: (strangers) => port.input(holder, { type: "strangers", ...strangers }),
      });
      if (open.closed) return router.close();
      open.router = router;
      port.input(holder, { type: "listening", endpoint: router.endpoint });
    } catch (error) {
      port.input(holder, { type: "bindFailed", text: (error as Error).message });
    }
  }
}

/** What a HELLO is answered with, in the form that the engines' release knows. */
function initOf(
  { form, addresses, parallelConfig, redundantExperts }: ScaleUpReply,
): Init | ScaleUpInit {
  return form === "wrapped"
    ? { engineMetadata: { addresses, parallelConfig }, numRedundantExperts: redundantExperts }
    : { addresses, parallelConfig, numRedundantExperts: redundantExperts };
}
