/**
 * How a socket waits: the one place where the runtimes differ.
 *
 * On Node a socket waits natively. On Deno 2.9 a native wait loses wake-ups and a timeout of libzmq crashes the
 * process, so that there one loop asks every socket of the process whether it is readable, and only then reads. It
 * backs off while nothing arrives (about 5 % of a core for one idle socket, 11 % for 64) and wakes when we send.
 */

/** A message as ZeroMQ delivers it. */
export type Frames = readonly Uint8Array[];

/** What this file needs of a socket of the `zeromq` package. */
export interface ReadableSocket {
  readonly closed: boolean;
  readonly readable: boolean;
  receive(): Promise<readonly Uint8Array[]>;
}

/** True where a socket may wait in native code. */
export const waitsNatively: boolean = !("Deno" in globalThis);

/** So many messages of one socket before the others, timers and I/O have their turn. */
const BURST = 64;
/** Turns without a message before the loop sleeps 1 ms, and before it sleeps 5 ms. */
const SPINS = 20;
const SHORT_SLEEPS = 200;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A delivery that can be ended. */
export interface Delivery {
  /** No message is delivered any more; the socket may be closed. */
  stop(): void;
  /** Something was sent: an answer may come soon. */
  poke(): void;
}

/**
 * Delivers every message of a socket, in order, until the delivery is stopped or the socket closed. An exception of
 * `deliver` is a defect of ours: it is thrown outside, where the process reports it, and delivery goes on.
 */
export function deliverFrom(
  socket: ReadableSocket,
  deliver: (frames: Frames) => void,
  loop: ReadinessLoop = sharedLoop,
): Delivery {
  if (!waitsNatively || loop !== sharedLoop) return loop.add(socket, deliver);
  let stopped = false;
  // What has arrived together is handed over together, so that whoever takes it can treat it as one.
  let burst: Frames[] = [];
  const handOver = () => {
    const taken = burst;
    burst = [];
    for (const frames of taken) if (!stopped) hand(frames, deliver);
  };
  void (async () => {
    try {
      await turn(); // whoever made the socket has it in hand before its first message
      while (!stopped && !socket.closed) {
        burst.push(await socket.receive());
        while (burst.length < BURST && !stopped && !socket.closed && socket.readable) {
          burst.push(await socket.receive());
        }
        handOver();
        if (!stopped && !socket.closed && socket.readable) await turn();
      }
    } catch (error) {
      handOver();
      if (!stopped && !socket.closed) outside(error);
    }
  })();
  return { stop: () => void (stopped = true), poke: () => {} };
}

/** The loop that reads many sockets without ever waiting in native code. */
export class ReadinessLoop {
  readonly #sockets = new Map<ReadableSocket, (frames: Frames) => void>();
  #running = false;
  #idleTurns = 0;
  #wake: (() => void) | undefined;

  /** How many sockets it reads. */
  get size(): number {
    return this.#sockets.size;
  }

  add(socket: ReadableSocket, deliver: (frames: Frames) => void): Delivery {
    this.#sockets.set(socket, deliver);
    this.#poke();
    if (!this.#running) void this.#run();
    return {
      stop: () => {
        this.#sockets.delete(socket);
        this.#poke();
      },
      poke: () => this.#poke(),
    };
  }

  #poke(): void {
    this.#idleTurns = 0;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    this.#running = true;
    await turn(); // whoever made the socket has it in hand before its first message
    while (this.#sockets.size > 0) {
      let received = false;
      for (const [socket, deliver] of [...this.#sockets]) {
        received = await this.#read(socket, deliver) || received;
      }
      this.#idleTurns = received ? 0 : this.#idleTurns + 1;
      if (this.#idleTurns <= SPINS) await turn();
      else await this.#sleep(this.#idleTurns <= SPINS + SHORT_SLEEPS ? 1 : 5);
    }
    this.#running = false;
  }

  async #read(socket: ReadableSocket, deliver: (frames: Frames) => void): Promise<boolean> {
    const burst: Frames[] = [];
    try {
      const open = () => this.#sockets.has(socket) && !socket.closed;
      while (burst.length < BURST && open() && socket.readable) burst.push(await socket.receive());
    } catch (error) {
      if (!socket.closed && this.#sockets.has(socket) && codeOf(error) !== "EAGAIN") outside(error);
    }
    for (const frames of burst) if (this.#sockets.has(socket)) hand(frames, deliver);
    if (socket.closed) this.#sockets.delete(socket);
    return burst.length > 0;
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}

/** The loop of this process. */
export const sharedLoop: ReadinessLoop = new ReadinessLoop();

function hand(frames: Frames, deliver: (frames: Frames) => void): void {
  try {
    deliver(frames);
  } catch (error) {
    outside(error);
  }
}

function outside(error: unknown): void {
  setTimeout(() => {
    throw error;
  }, 0);
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;
