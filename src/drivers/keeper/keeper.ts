import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import type { Socket } from "node:net";
import process from "node:process";
import { identify, type NodeSignal } from "../process-table.ts";
import { Children } from "./children.ts";
import { LineSocket } from "./line-socket.ts";
import {
  FIRST_CONTROLLER_WITHIN_MS,
  type Hello,
  HELLO_WITHIN_MS,
  KEEPER_PROTOCOL,
  type KeeperCommand,
  type KeeperCommands,
  type KeeperPush,
  type KeeperReply,
  Refused,
  type StopReport,
  type Welcome,
  type WireError,
} from "./protocol.ts";
import { readRequest } from "./requests.ts";
import { runtime } from "./self.ts";
import { Services } from "./services.ts";

/** How long a hello waits for its own connection's end, which may have arrived with it, in milliseconds. */
const HELLO_SETTLES_MS = 10;

/** What a keeper is started with. JSON, in a file that only its user can read. */
export interface KeeperSettings {
  mark: string;
  fence: number;
  /** How long a stop lets launches end by themselves, in milliseconds, when the lease ends or the keeper is told to terminate. */
  stopDeadlineMs: number;
}

/** One controller's connection, from its hello on. */
interface Controller {
  socket: LineSocket;
  hello: Hello;
}

/**
 * The keeper: owns processes and services for a coordinator that may die, come back, or be replaced.
 * It holds three clocks: the first controller's grace, the lease, and a stop's deadline.
 */
export class Keeper {
  readonly #settings: KeeperSettings;
  readonly #token: Buffer;
  readonly #children: Children;
  readonly #services: Services;
  readonly #ended: (report: StopReport) => void;
  #controller: Controller | null = null;
  #fence: number;
  #leaseMs = 0;
  #clock: ReturnType<typeof setTimeout> | undefined;
  #stopping: Promise<StopReport> | null = null;

  /** `ended` is called once, when everything has been stopped. */
  constructor(
    settings: KeeperSettings,
    token: string,
    ended: (report: StopReport) => void,
    services: Services = new Services(),
  ) {
    this.#settings = settings;
    this.#token = Buffer.from(token);
    this.#fence = settings.fence;
    this.#ended = ended;
    this.#services = services;
    this.#children = new Children(
      settings.mark,
      (exit) => this.#push({ event: "exited", ...exit }),
    );
    this.#arm(FIRST_CONTROLLER_WITHIN_MS, "no controller came");
  }

  /** Takes a new connection, which has two seconds to say hello. */
  accept(socket: Socket): void {
    let controller: Controller | null = null;
    let silence = setTimeout(() => lines.destroy("no hello"), HELLO_WITHIN_MS);
    const heard = (): void => {
      const heartbeatMs = controller?.hello.heartbeatMs;
      if (controller === null) return;
      clearTimeout(silence);
      if (heartbeatMs === undefined) return;
      silence = setTimeout(() => lines.destroy("no heartbeat"), heartbeatMs);
    };
    const lines: LineSocket = new LineSocket(socket, {
      line: async (message) => {
        heard();
        const before = controller;
        const after = await this.#answer(lines, message, before);
        if (after !== before) controller = after;
        heard();
      },
      closed: () => {
        clearTimeout(silence);
        if (controller === null || controller !== this.#controller) return;
        this.#controller = null;
        this.#arm(this.#leaseMs, "the lease ended without a controller");
      },
    });
  }

  /** Stops everything; the second call awaits the first. */
  stop(why: string, deadlineMs: number = this.#settings.stopDeadlineMs): Promise<StopReport> {
    clearTimeout(this.#clock);
    this.#stopping ??= (async () => {
      const report = await this.#children.stop("all", deadlineMs);
      await this.#services.stopAll();
      this.#push({ event: "stopped", why, ...report });
      return report;
    })();
    return this.#stopping;
  }

  async #stopAndEnd(why: string, deadlineMs?: number): Promise<StopReport> {
    const report = await this.stop(why, deadlineMs);
    // A turn later, so that the reply that waits for this report leaves first.
    setTimeout(() => {
      this.#controller?.socket.end();
      this.#ended(report);
    }, 0);
    return report;
  }

  /** Stops everything after `ms`, unless a controller comes before. */
  #arm(ms: number, why: string): void {
    clearTimeout(this.#clock);
    if (this.#stopping !== null) return;
    if (ms <= 0) void this.#stopAndEnd(why);
    else this.#clock = setTimeout(() => void this.#stopAndEnd(why), ms);
  }

  #push(push: KeeperPush): void {
    this.#controller?.socket.send(push);
  }

  /** Answers one request; returns who has said hello on this connection, if anybody has. */
  async #answer(
    socket: LineSocket,
    message: unknown,
    controller: Controller | null,
  ): Promise<Controller | null> {
    const n = (message as { n?: unknown } | null)?.n;
    if (typeof n !== "number") {
      socket.destroy("a request without a number");
      return controller;
    }
    let greeted = controller;
    let reply: KeeperReply;
    try {
      const request = readRequest(message);
      if (request.do === "hello") {
        const hello = request.ask as Hello;
        this.#admit(hello);
        // A hello that lay in the queue of a stopped keeper may be of somebody who has given up since: its end lies right behind it.
        await new Promise((resolve) => setTimeout(resolve, HELLO_SETTLES_MS));
        if (!socket.open) return controller;
        const welcome = await this.#welcome();
        greeted = { socket, hello };
        this.#take(greeted);
        reply = { re: n, ok: welcome };
      } else {
        if (controller === null) {
          throw new Refused("hello-first", "the first request of a connection is hello");
        }
        if (controller !== this.#controller) {
          throw new Refused("fenced", "another controller has taken over", this.#fence);
        }
        reply = { re: n, ok: await this.#do(request.do, request.ask) };
      }
    } catch (error) {
      reply = { re: n, error: wireError(error as Error) };
    }
    socket.send(reply);
    // Whoever does not begin with a good hello has no business here.
    if (greeted === null) socket.end();
    return greeted;
  }

  /** @throws Refused unless this controller may take the keeper. */
  #admit(hello: Hello): void {
    const given = Buffer.from(hello.token);
    if (given.length !== this.#token.length || !timingSafeEqual(given, this.#token)) {
      throw new Refused("unauthorised", "the token is not this keeper's");
    }
    if (hello.protocol !== KEEPER_PROTOCOL) {
      throw new Refused(
        "protocol",
        `this keeper speaks version ${KEEPER_PROTOCOL}, the controller ${hello.protocol}`,
      );
    }
    if (this.#stopping !== null) throw new Refused("stopping", "this keeper is stopping");
    if (hello.fence < this.#fence) {
      throw new Refused("fenced", `fence ${hello.fence} is below ${this.#fence}`, this.#fence);
    }
  }

  /** Makes it the controller; the one before is told and closed. */
  #take(controller: Controller): void {
    this.#admit(controller.hello);
    const before = this.#controller;
    this.#controller = controller;
    this.#fence = controller.hello.fence;
    this.#leaseMs = controller.hello.leaseMs;
    clearTimeout(this.#clock);
    if (before === null || before.socket === controller.socket) return;
    before.socket.send({ event: "superseded", fence: this.#fence } satisfies KeeperPush);
    before.socket.end();
  }

  async #welcome(): Promise<Welcome> {
    const services = await this.#services.list();
    return {
      protocol: KEEPER_PROTOCOL,
      keeper: { ...identify(process.pid), mark: this.#settings.mark, runtime },
      children: this.#children.list(),
      exits: this.#children.unacknowledged(),
      services,
    };
  }

  async #do(command: KeeperCommand, ask: unknown): Promise<unknown> {
    const handlers: {
      [K in Exclude<KeeperCommand, "hello">]: (
        ask: KeeperCommands[K]["ask"],
      ) => KeeperCommands[K]["answer"] | Promise<KeeperCommands[K]["answer"]>;
    } = {
      spawn: (launch) => {
        if (this.#stopping !== null) throw new Refused("stopping", "this keeper is stopping");
        return this.#children.spawn(launch);
      },
      signal: ({ id, signal, scope }) => ({
        sent: this.#children.signal(id, signal as NodeSignal, scope),
      }),
      stop: ({ id, deadlineMs }) => this.#children.stop(id, deadlineMs),
      list: async () => ({
        children: this.#children.list(),
        services: await this.#services.list(),
      }),
      tail: ({ id, lines }) => ({ lines: this.#children.tail(id, lines) }),
      lease: ({ ms }) => {
        this.#leaseMs = ms;
        return {};
      },
      ping: () => ({ at: Date.now() }),
      ack: ({ seq }) => {
        this.#children.acknowledge(seq);
        return {};
      },
      "service-start": ({ id, kind, options }) => {
        if (this.#stopping !== null) throw new Refused("stopping", "this keeper is stopping");
        return this.#services.start(id, kind, options);
      },
      "service-stop": async ({ id }) => ({ stopped: await this.#services.stop(id) }),
      "host-stop": ({ deadlineMs }) => this.#stopAndEnd("asked to", deadlineMs),
    };
    const handler = handlers[command as Exclude<KeeperCommand, "hello">] as (
      ask: unknown,
    ) => unknown;
    return await handler(ask);
  }
}

function wireError(error: Error): WireError {
  if (!(error instanceof Refused)) return { code: "internal", message: error.message };
  const { code, message, fence } = error;
  return { code, message, ...(fence === undefined ? {} : { fence }) };
}
