/** Carries the handshake of start-up: a ROUTER for each held handshake socket, messages in as inputs, INIT out. */
import { type InstanceId, rankOf } from "../kernel/mod.ts";
import type { HandshakeSocket, SendInit } from "../machines/mod.ts";
import type { EngineHandshake, WireRank } from "../protocol/mod.ts";
import type { Driver, DriverPort, Holding, Order } from "./driver.ts";
import { bindHandshakeRouter, type HandshakeRouter } from "./zmq/handshake-router.ts";

interface Open {
  readonly holder: InstanceId;
  readonly key: string;
  socket: HandshakeSocket;
  router: HandshakeRouter | undefined;
  closed: boolean;
}

export class HandshakeDriver implements Driver<SendInit, HandshakeSocket> {
  readonly name = "handshake";
  readonly effects = ["handshake.init"] as const;
  readonly resources = ["socket.handshake"] as const;
  #port: DriverPort | undefined;
  #open = new Map<string, Open>();

  start(port: DriverPort): void {
    this.#port = port;
  }

  hold({ holder, key, resource }: Holding<HandshakeSocket>): void {
    const known = this.#open.get(`${holder} ${key}`);
    if (known !== undefined) {
      known.socket = resource;
      return;
    }
    const open: Open = { holder, key, socket: resource, router: undefined, closed: false };
    this.#open.set(`${holder} ${key}`, open);
    void this.#bind(open);
  }

  release({ holder, key }: Holding<HandshakeSocket>): void {
    const open = this.#open.get(`${holder} ${key}`);
    this.#open.delete(`${holder} ${key}`);
    if (open !== undefined) shut(open);
  }

  /** INIT goes out on the socket that awaits the rank. An engine that is gone meanwhile says HELLO again. */
  perform({ from }: Order<SendInit>): void {
    const rank = rankOf(from) as WireRank;
    for (const { socket, router } of this.#open.values()) {
      if (router === undefined || socket.init === null || !awaits(socket, rank)) continue;
      void router.sendInit(rank, socket.init);
      return;
    }
  }

  close(): Promise<void> {
    for (const open of this.#open.values()) shut(open);
    this.#open.clear();
    return Promise.resolve();
  }

  async #bind(open: Open): Promise<void> {
    const port = this.#port!;
    try {
      const router = await bindHandshakeRouter({
        address: open.socket.bind,
        expects: (rank) => awaits(open.socket, rank),
        onMessage: (rank, message) => this.#heard(rank, message),
        onMalformed: (rank, refusal) =>
          port.input(`rank/${rank}/engine`, { type: "malformed", reason: refusal.text }),
        onStrangers: (strangers) => port.input(open.holder, { type: "strangers", ...strangers }),
      });
      open.router = router;
      if (open.closed) return router.close();
      port.input(open.holder, {
        type: "bound",
        socket: open.key,
        endpoints: { bind: router.endpoint },
      });
    } catch (error) {
      port.input(open.holder, {
        type: "bindFailed",
        socket: open.key,
        text: (error as Error).message,
      });
    }
  }

  #heard(rank: WireRank, message: EngineHandshake): void {
    const { local, headless } = message;
    const to = `rank/${rank}/engine`;
    switch (message.type) {
      case "hello":
        return this.#port!.input(to, { type: "hello", local, headless });
      case "ready":
        return this.#port!.input(to, {
          type: "ready",
          local,
          headless,
          blocks: message.numGpuBlocks ?? null,
          statsAddress: message.dpStatsAddress ?? null,
          hash: message.parallelConfigHash ?? null,
        });
      case "unknown-status":
        return this.#port!.input(to, {
          type: "malformed",
          reason: `there is no status ${message.status}`,
          status: message.status,
        });
    }
  }
}

const awaits = (socket: HandshakeSocket, rank: number): boolean =>
  socket.ranks.some(([first, last]) => first <= rank && rank <= last);

function shut(open: Open): void {
  open.closed = true;
  open.router?.close();
}
