/**
 * Everything outside a coordinator, in memory: a keeper with its processes, engines that shake hands and run one wave of requests, one of them
 * started by somebody else, sockets in which frames wait while nobody is there. It goes on when its coordinator dies, and its whole state is
 * JSON, so that it can outlive a process too.
 */
import type { Driver, DriverPort, Holding, Order } from "../../src/drivers/driver.ts";
import type { EffectId, KernelEvent, Typed } from "../../src/kernel/mod.ts";
import {
  effects,
  type HandshakeSocket,
  type PublishWave,
  type Spawn,
} from "../../src/machines/mod.ts";

interface Child {
  readonly id: string;
  readonly rank: number;
  readonly pid: number;
  engine: "booting" | "said-hello" | "loading" | "ready" | "gone";
  exit: { code: number | null; signal: string | null } | null;
  /** The exit is in a journal: it need not be told again. */
  acknowledged: boolean;
  /** Started by somebody else: the keeper knows nothing of it. */
  readonly foreign: boolean;
}

interface Frame {
  readonly to: string;
  readonly event: KernelEvent;
}

/** All of it. */
export interface WorldState {
  keeper: "absent" | "runs" | "dismissed";
  children: Child[];
  /** Frames in sockets whose coordinator has not read them. */
  frames: Frame[];
  /** Frames that a coordinator took out of its sockets. */
  read: Frame[];
  announced: string[];
  spawnsAsked: number;
  /** How far the one wave has come that a front-end asks for; complete once that was published. */
  wave: "none" | "woken" | "running" | "complete";
}

/** The rank whose engine is somebody else's. */
export const FOREIGN = 2;

export const beginning = (): WorldState => ({
  keeper: "absent",
  children: [{
    id: "foreign",
    rank: FOREIGN,
    pid: 0,
    engine: "booting",
    exit: null,
    acknowledged: true,
    foreign: true,
  }],
  frames: [],
  read: [],
  announced: [],
  spawnsAsked: 0,
  wave: "none",
});

const instanceOf = (id: string): string => id.slice(0, id.lastIndexOf("@"));
const RESOURCES = [
  "socket.handshake",
  "socket.bus",
  "socket.coordinator",
  "keeper",
  "heartbeat",
];

export class ClusterWorld {
  readonly state: WorldState;
  readonly #changed: () => void;
  /** Per life of a coordinator. */
  #port: DriverPort | undefined;
  #handshake: HandshakeSocket | undefined;
  #keeperHeld = false;
  #coordinates = false;
  /** What drivers will report next, in order. */
  #due: (() => void)[] = [];

  /** @param changed called after every change, before anything else happens: where the state is kept. */
  constructor(state: WorldState = beginning(), changed: () => void = () => {}) {
    this.state = state;
    this.#changed = changed;
  }

  /** One thing happens. False when nothing can without time passing. */
  turn(): boolean {
    const due = this.#due.shift();
    if (due !== undefined) {
      due();
      return true;
    }
    const { children, frames, read } = this.state;
    if (this.#handshake?.init != null && frames.length > 0) {
      const frame = frames.shift()!;
      read.push(frame);
      this.#changed();
      this.#port!.input(frame.to, frame.event);
      return true;
    }
    for (const child of children) {
      if (child.engine === "booting") this.#says(child, "said-hello", "hello");
      else if (child.engine === "loading") this.#says(child, "ready", "ready");
      else continue;
      return true;
    }
    if (this.#port !== undefined && this.state.wave === "none" && this.#allReady) {
      this.state.wave = "woken";
      this.#tellWaves({ type: "wake", exclude: null, wave: 0 });
      return true;
    }
    return false;
  }

  get #allReady(): boolean {
    const { children } = this.state;
    return children.length > FOREIGN && children.every((c) => c.engine === "ready");
  }

  #tellWaves(event: KernelEvent): void {
    this.state.frames.push({ to: "waves", event });
    this.#changed();
  }

  /** Time passes without end: an engine that never got its INIT gives up. */
  patienceEnds(): void {
    for (const child of this.state.children) {
      if (child.engine === "said-hello") this.#exits(child, { code: 1, signal: null });
    }
  }

  /** The lease is over: a keeper that no coordinator holds stops everything and ends. */
  leaseEnds(): void {
    if (this.state.keeper !== "runs" || this.#keeperHeld) return;
    this.state.keeper = "dismissed";
    for (const child of this.state.children) {
      if (child.exit === null && !child.foreign) {
        this.#exits(child, { code: null, signal: "SIGTERM" });
      }
    }
    this.#changed();
  }

  /** A driver for the next coordinator. The one before is gone, with all that it had in hand. */
  driver(): Driver<Typed, Typed> {
    this.#port = undefined;
    this.#handshake = undefined;
    this.#keeperHeld = false;
    this.#coordinates = false;
    this.#due = [];
    // A front-end whose request goes unanswered sends the next one.
    if (this.state.wave !== "complete") this.state.wave = "none";
    return {
      name: "world",
      effects: Object.keys(effects),
      resources: RESOURCES,
      start: (port) => void (this.#port = port),
      perform: (order) => this.#perform(order),
      ask: (order) => this.#perform(order),
      hold: (holding) => this.#hold(holding),
      release: ({ resource }) => this.#release(resource),
      close: () => Promise.resolve(),
    };
  }

  #perform(order: Order): void {
    const answer = (event: KernelEvent) =>
      void this.#due.push(() => this.#port!.outcome(order.id, order.from, event));
    switch (order.effect.type) {
      case "keeper.place":
        return answer({ type: "keeperPlaced", place: { mark: "m", directory: "/k" } });
      case "ports.draw":
        return answer({ type: "portsDrawn", ports: [1, 2, 3, 4, 5] });
      case "waves.start":
        // Engines that run a wave hear nothing new, and one that they have completed is over.
        if (this.state.wave === "complete") return;
        this.state.wave = "running";
        for (const type of ["startWave", "waveComplete"]) {
          this.#tellWaves({ type, wave: 0, engine: 0 });
        }
        return;
      case "waves.publish": {
        const { wave, running } = order.effect as PublishWave;
        if (wave === 1 && !running) this.state.wave = "complete";
        return this.#changed();
      }
      case "process.spawn":
        return this.#spawn(order as Order<Spawn>);
      case "process.stop": {
        for (const child of this.state.children) {
          if (instanceOf(child.id) === order.from && child.exit === null) {
            this.#exits(child, { code: null, signal: "SIGTERM" });
          }
        }
        return answer({ type: "stopAnswered" });
      }
      case "handshake.init": {
        const rank = Number(/^rank\/(\d+)\//.exec(order.from)![1]);
        const child = this.state.children.findLast((c) => c.rank === rank);
        // Said again it lies unread in the engine's socket.
        if (child?.engine === "said-hello") {
          child.engine = "loading";
          this.#tellWaves({ type: "subscribed" });
        }
        return this.#changed();
      }
      case "engine.call": {
        // Asked whether it goes on. One that is gone says nothing: the keeper does.
        const rank = Number(/^rank\/(\d+)\//.exec(order.from)![1]);
        const child = this.state.children.findLast((c) => c.rank === rank);
        if (child?.engine === "ready") answer({ type: "utilityReplied", value: false });
        return;
      }
      case "announce":
        this.state.announced.push(String((order.effect as KernelEvent)["what"]));
        return this.#changed();
    }
  }

  #spawn(order: Order<Spawn>): void {
    const id = `${order.from}@${order.id}`;
    const { children } = this.state;
    this.state.spawnsAsked++;
    let child = children.find((c) => c.id === id);
    if (child === undefined) {
      const rank = Number(/(\d+)$/.exec(order.from)![1]);
      const pid = 100 + children.length;
      const life = { engine: "booting", exit: null, acknowledged: false, foreign: false } as const;
      child = { id, rank, pid, ...life };
      children.push(child);
    }
    this.#changed();
    const { pid } = child;
    this.#due.push(() => this.#port!.outcome(order.id, order.from, { type: "spawned", pid }));
  }

  #hold({ holder, key, resource }: Holding): void {
    const bound = (endpoints: Record<string, string>) =>
      void this.#due.push(() =>
        this.#port!.input(holder, { type: "bound", socket: key, endpoints })
      );
    if (resource.type === "socket.handshake") {
      const first = this.#handshake === undefined;
      this.#handshake = resource as HandshakeSocket;
      if (first) bound({ bind: "tcp://127.0.0.1:29550" });
    } else if (resource.type === "socket.bus") {
      bound({ input: "tcp://127.0.0.1:1", output: "tcp://127.0.0.1:2" });
    } else if (resource.type === "socket.coordinator") {
      if (this.#coordinates) return;
      this.#coordinates = true;
      bound({ frontPublish: "ipc:///f", backPublish: "ipc:///p", backOutput: "ipc:///b" });
      // Whoever had subscribed does so again on the new connection.
      for (const { engine } of this.state.children) {
        if (engine === "loading" || engine === "ready") this.#tellWaves({ type: "subscribed" });
      }
    } else if (resource.type === "keeper") this.#hire(holder);
  }

  #hire(holder: string): void {
    this.#keeperHeld = true;
    if (this.state.keeper === "absent") this.state.keeper = "runs";
    this.#changed();
    const lost = this.state.keeper === "dismissed";
    this.#due.push(() =>
      this.#port!.input(
        holder,
        lost
          ? { type: "keeperLost", text: "it was dismissed" }
          : { type: "keeperUp", identity: { pid: 1, startTicks: 1, boot: "b" } },
      )
    );
    // The keeper tells every coordinator anew what none has acknowledged.
    for (const child of this.state.children) if (child.exit !== null) this.#tellExit(child);
  }

  #release(resource: Typed): void {
    if (resource.type === "socket.handshake") this.#handshake = undefined;
    if (resource.type !== "keeper") return;
    this.state.keeper = "dismissed";
    this.#changed();
  }

  #says(child: Child, engine: Child["engine"], type: string): void {
    child.engine = engine;
    const common = { type, local: !child.foreign, headless: child.foreign };
    const event = type === "hello"
      ? common
      : { ...common, blocks: 10 + child.rank, statsAddress: null, hash: null };
    this.state.frames.push({ to: `rank/${child.rank}/engine`, event });
    this.#changed();
  }

  #exits(child: Child, exit: NonNullable<Child["exit"]>): void {
    child.exit = exit;
    child.engine = "gone";
    this.#changed();
    this.#tellExit(child);
  }

  #tellExit(child: Child): void {
    if (child.foreign || child.acknowledged || this.#port === undefined) return;
    this.#due.push(() =>
      this.#port!.input(instanceOf(child.id), { type: "exited", ...child.exit, tail: [] }, () => {
        child.acknowledged = true;
        this.#changed();
      })
    );
  }
}

/** The call ids that a list of spawns was made with are part of their children's names: nothing was started twice. */
export const spawnedTwice = ({ children }: WorldState): string[] => {
  const seen = new Set<string>();
  return children.map((c) => instanceOf(c.id)).filter((id) => seen.size === seen.add(id).size);
};

export type { EffectId };
