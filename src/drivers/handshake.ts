/** Carries the handshake of start-up: a ROUTER for each held handshake socket, messages in as inputs, INIT out. */
import { setImmediate } from "node:timers";
import { type InstanceId, type KernelEvent, rankOf } from "../kernel/mod.ts";
import type { HandshakeSocket, SendInit } from "../machines/mod.ts";
import type { EngineHandshake, Hello, WireRank } from "../protocol/mod.ts";
import type { Driver, DriverPort, Holding, Order } from "./driver.ts";
import {
  bindHandshakeRouter,
  type HandshakeRouter,
  type HandshakeRouterOptions,
} from "./zmq/handshake-router.ts";

interface Open {
  readonly holder: InstanceId;
  readonly key: string;
  socket: HandshakeSocket;
  router: HandshakeRouter | undefined;
  readonly bound: Promise<void>;
  /** Ranks that somebody else greets at this address. */
  guest: HandshakeGuest | undefined;
  /** HELLOs without an answer: an engine says it once, and may be there before somebody greets it. */
  readonly unanswered: Map<WireRank, { readonly hello: Hello; readonly at: number }>;
  closed: boolean;
}

/** Who greets some ranks at an address that is bound already. */
export type HandshakeGuest = Pick<
  HandshakeRouterOptions,
  "expects" | "onMessage" | "onMalformed"
>;

/** Addresses at which others may greet ranks of their own. */
export interface HandshakeHost {
  /** Undefined where nothing is bound at this address. Closing what it answers leaves the address bound. */
  receive(address: string, guest: HandshakeGuest): Promise<HandshakeRouter | undefined>;
}

export class HandshakeDriver implements Driver<SendInit, HandshakeSocket>, HandshakeHost {
  readonly name = "handshake";
  readonly effects = ["handshake.init"] as const;
  readonly resources = ["socket.handshake"] as const;
  #port: DriverPort | undefined;
  #open = new Map<string, Open>();
  /** Ranks that say the same are decoded as the same message, and are one event. */
  readonly #said = new WeakMap<EngineHandshake, KernelEvent>();

  start(port: DriverPort): void {
    this.#port = port;
  }

  hold({ holder, key, resource }: Holding<HandshakeSocket>): void {
    const known = this.#open.get(`${holder} ${key}`);
    if (known !== undefined) {
      known.socket = resource;
      return;
    }
    let settled = () => {};
    const open: Open = {
      holder,
      key,
      socket: resource,
      router: undefined,
      bound: new Promise((resolve) => settled = resolve),
      guest: undefined,
      unanswered: new Map(),
      closed: false,
    };
    this.#open.set(`${holder} ${key}`, open);
    void this.#bind(open).finally(settled);
  }

  async receive(address: string, guest: HandshakeGuest): Promise<HandshakeRouter | undefined> {
    if (address.endsWith(":0")) return undefined; // a free port is wanted, and not this one
    for (const open of this.#open.values()) {
      await open.bound;
      if (
        open.router === undefined || ![open.socket.bind, open.router.endpoint].includes(address)
      ) {
        continue;
      }
      const { router, unanswered } = open;
      open.guest = guest;
      // Once whoever asked knows where it is.
      setImmediate(() => {
        const since = Date.now() - HELLO_KEPT_MS;
        for (const [rank, { hello, at }] of unanswered) {
          if (open.guest === guest && at >= since && guest.expects(rank)) {
            guest.onMessage(rank, hello);
          }
        }
      });
      return {
        endpoint: router.endpoint,
        sendInit: (rank, init) => {
          unanswered.delete(rank);
          return router.sendInit(rank, init);
        },
        close: () => {
          if (open.guest === guest) open.guest = undefined;
        },
      };
    }
    return undefined;
  }

  release({ holder, key }: Holding<HandshakeSocket>): void {
    const open = this.#open.get(`${holder} ${key}`);
    this.#open.delete(`${holder} ${key}`);
    if (open !== undefined) shut(open);
  }

  /** INIT goes out on the socket that awaits the rank. An engine that is gone meanwhile says HELLO again. */
  perform({ from }: Order<SendInit>): void {
    const rank = rankOf(from) as WireRank;
    for (const { socket, router, unanswered } of this.#open.values()) {
      if (router === undefined || socket.init === null || !awaits(socket, rank)) continue;
      unanswered.delete(rank);
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
        expects: (rank) => open.guest?.expects(rank) === true || awaits(open.socket, rank),
        onEarlyHello: (rank, hello) => open.unanswered.set(rank, { hello, at: Date.now() }),
        onMessage: (rank, message) => {
          if (message.type === "hello") {
            open.unanswered.set(rank, { hello: message, at: Date.now() });
          }
          if (open.guest?.expects(rank) === true) open.guest.onMessage(rank, message);
          else this.#heard(rank, message);
        },
        onMalformed: (rank, refusal) =>
          open.guest?.expects(rank) === true
            ? open.guest.onMalformed(rank, refusal)
            : port.input(`rank/${rank}/engine`, { type: "malformed", reason: refusal.text }),
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
    let event = this.#said.get(message);
    if (event === undefined) this.#said.set(message, event = Object.freeze(eventOf(message)));
    this.#port!.input(`rank/${rank}/engine`, event);
  }
}

function eventOf(message: EngineHandshake): KernelEvent {
  const { local, headless } = message;
  switch (message.type) {
    case "hello":
      return { type: "hello", local, headless };
    case "ready": {
      const { coordStorePort: storePort, numRedundantExperts: redundant } = message;
      return {
        type: "ready",
        local,
        headless,
        blocks: message.numGpuBlocks ?? null,
        statsAddress: message.dpStatsAddress ?? null,
        hash: message.parallelConfigHash ?? null,
        ...(storePort === undefined ? {} : { storePort }),
        ...(redundant == null ? {} : { redundant }),
      };
    }
    case "unknown-status":
      return {
        type: "malformed",
        reason: `there is no status ${message.status}`,
        status: message.status,
      };
  }
}

/** An engine gives up after five minutes without INIT (wire spec, 2.3). */
const HELLO_KEPT_MS = 5 * 60_000;

const awaits = (socket: HandshakeSocket, rank: number): boolean =>
  socket.ranks.some(([first, last]) => first <= rank && rank <= last);

function shut(open: Open): void {
  open.closed = true;
  open.router?.close();
}
