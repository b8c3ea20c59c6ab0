/**
 * The ROUTER of rank 0 that greets new ranks while an operation runs (wire spec, 7.6). Where the start-up's handshake has that address and
 * keeps it, new ranks are greeted there.
 */
import type { ScaleUpReply, ScaleUpSocket, SendScaleUpInit } from "../machines/effects/scaling.ts";
import type { KernelEvent } from "../kernel/mod.ts";
import type { EngineHandshake, Init, ScaleUpInit, WireRank } from "../protocol/mod.ts";
import type { Driver, DriverPort, Holding, Order } from "./driver.ts";
import type { HandshakeGuest, HandshakeHost } from "./handshake.ts";
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
  readonly #host: HandshakeHost | undefined;
  #port: DriverPort | undefined;
  #open = new Map<string, Open>();

  constructor(host?: HandshakeHost) {
    this.#host = host;
  }

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
    void this.#bind(holder, resource, open);
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

  async #bind(holder: string, { bind, ranks }: ScaleUpSocket, open: Open): Promise<void> {
    const port = this.#port!;
    const guest: HandshakeGuest = {
      expects: (rank) => ranks[0] <= rank && rank <= ranks[1],
      onMessage: (rank, message) => port.input(holder, said(rank, message)),
      onMalformed: (rank, refusal) =>
        port.input(holder, { type: "malformed", rank, reason: refusal.text }),
    };
    try {
      const router = await this.#host?.receive(bind, guest) ??
        await bindHandshakeRouter({
          ...guest,
          address: bind,
          // Which ranks are awaited is the machine's matter; it refuses the others by name.
          expects: () => true,
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

/** A message as its machine takes it. */
const said = (rank: WireRank, message: EngineHandshake): KernelEvent => {
  if (message.type === "unknown-status") {
    return { type: "malformed", rank, reason: `there is no status ${message.status}` };
  }
  const { type, local, headless } = message;
  if (type === "hello") return { type, rank, local, headless };
  const { parallelConfigHash: hash = null, numGpuBlocks: blocks } = message;
  return { type, rank, local, headless, hash, ...(blocks == null ? {} : { blocks }) };
};

/** What a HELLO is answered with, in the form that the engines' release knows. */
function initOf(
  { form, addresses, parallelConfig, redundantExperts }: ScaleUpReply,
): Init | ScaleUpInit {
  return form === "wrapped"
    ? { engineMetadata: { addresses, parallelConfig }, numRedundantExperts: redundantExperts }
    : { addresses, parallelConfig, numRedundantExperts: redundantExperts };
}
