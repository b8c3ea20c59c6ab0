import { connect as connectTo } from "node:net";
import type { ProcessIdentity } from "../process-table.ts";
import { Calls } from "./calls.ts";
import { KeeperError } from "./errors.ts";
import { LineSocket } from "./line-socket.ts";
import { type KeeperPlace, readToken, socketOf } from "./place.ts";
import {
  type ChildStatus,
  type ExitEvent,
  KEEPER_PROTOCOL,
  type KeeperCommand,
  type KeeperCommands,
  type KeeperPush,
  type KeeperReply,
  type Launch,
  type ServiceStatus,
  type StopReport,
  type Welcome,
} from "./protocol.ts";

/** What a keeper tells its controller by itself. */
export interface KeeperHandlers {
  /** A launch ended. Comes again after a new hello until it is acknowledged; `seq` tells it apart. */
  exited(exit: ExitEvent): void;
  /** The keeper stopped everything and ends: the lease was over, it was terminated, or it was asked to. */
  stopped?(why: string, report: StopReport): void;
  /**
   * The connection is gone and nobody asked for that. `superseded`: another owner took over. `keeper`: the keeper ended or cannot be
   * reached; what it would have told about exits can no longer be known.
   */
  lost(how: "superseded" | "keeper", reason: string): void;
}

export interface ConnectKeeper {
  fence: number;
  leaseMs: number;
  heartbeatMs?: number;
  /** The keeper that must answer, as the journal has it. */
  expect?: ProcessIdentity;
  /** Default: the token in the keeper's directory. */
  token?: string;
  /** How long the hello may take, in milliseconds. Default 2000. */
  helloWithinMs?: number;
}

/** How long a command without a deadline of its own may take, in milliseconds. */
const ANSWER_WITHIN_MS = 10_000;

/** A controller's side of one connection to one keeper. */
export class KeeperClient {
  /** What the keeper said to our hello: who it is, its launches, and the exits that nobody has acknowledged. */
  readonly welcome: Welcome;
  readonly #lines: LineSocket;
  readonly #calls: Calls;
  #heart: ReturnType<typeof setInterval> | undefined;

  private constructor(lines: LineSocket, calls: Calls, welcome: Welcome, heartbeatMs?: number) {
    this.#lines = lines;
    this.#calls = calls;
    this.welcome = welcome;
    if (heartbeatMs === undefined) return;
    this.#heart = setInterval(() => {
      if (lines.open) void this.ping().catch(() => {});
      else clearInterval(this.#heart);
    }, heartbeatMs / 3);
    (this.#heart as unknown as { unref?(): void }).unref?.();
  }

  /**
   * Says hello to the keeper at `place`: the first time, or to adopt what it holds after a restart. A connection that opens proves
   * nothing; only an answered hello does, from the process that is expected there.
   *
   * @throws KeeperError `keeper-gone` when nobody listens, `keeper-silent` when nobody answers in time, `keeper-other`,
   * `keeper-unauthorised`, `keeper-fenced` (a newer owner has it), `keeper-stopping`.
   */
  static async connect(
    place: KeeperPlace,
    options: ConnectKeeper,
    handlers: KeeperHandlers,
  ): Promise<KeeperClient> {
    const token = options.token ?? readToken(place);
    const socket = connectTo(socketOf(place));
    let superseded: string | null = null;
    let open = false;
    const calls = new Calls();
    let failed = (_: KeeperError): void => {};
    const connected = new Promise<void>((resolve, reject) => {
      socket.once("connect", () => resolve());
      failed = reject;
    });
    const lines = new LineSocket(socket, {
      line: (message) => {
        if (typeof message !== "object" || message === null) return;
        if ("re" in message) return calls.settle(message as KeeperReply);
        const push = message as KeeperPush;
        if (push.event === "exited") handlers.exited(withoutEvent(push));
        else if (push.event === "superseded") {
          superseded = `an owner with fence ${push.fence} has taken over`;
        } else if (push.event === "stopped") {
          const { why, event: _, ...report } = push;
          calls.stopped = true;
          handlers.stopped?.(why, report);
        }
      },
      closed: (reason) => {
        const text = reason ?? "the keeper closed the connection";
        failed(new KeeperError("keeper-gone", `no keeper at ${place.directory}: ${text}`));
        calls.fail(text);
        if (!open || calls.closing || calls.stopped) return;
        handlers.lost(superseded === null ? "keeper" : "superseded", superseded ?? text);
      },
    });
    const withinMs = options.helloWithinMs ?? 2000;
    const timer = setTimeout(() => {
      failed(silent(place, withinMs));
      lines.destroy("no answer");
    }, withinMs);
    try {
      await connected;
      calls.send = (message) => lines.send(message);
      const welcome = await calls.call("hello", {
        token,
        fence: options.fence,
        leaseMs: options.leaseMs,
        protocol: KEEPER_PROTOCOL,
        ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
      }, withinMs).catch((error: KeeperError) => {
        throw error.code === "keeper-lost" ? silent(place, withinMs) : error;
      });
      const { expect } = options;
      if (welcome.keeper.mark !== place.mark || (expect !== undefined && !same(welcome, expect))) {
        throw new KeeperError(
          "keeper-other",
          `process ${welcome.keeper.pid} answered at ${place.directory}, which is not the keeper of this run` +
            (expect === undefined ? "" : ` (process ${expect.pid})`),
        );
      }
      open = true;
      return new KeeperClient(lines, calls, welcome, options.heartbeatMs);
    } catch (error) {
      lines.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Starts a launch. Repeating it with the same id is harmless. A program that cannot be started is an exit with an error. */
  spawn(launch: Launch): Promise<ChildStatus> {
    return this.#call("spawn", launch);
  }

  /** Signals a launch's process group, or its leader alone; false when it has ended. */
  async signal(id: string, signal: string, scope: "group" | "leader" = "group"): Promise<boolean> {
    return (await this.#call("signal", { id, signal, scope })).sent;
  }

  /** Terminates one launch; after the deadline its whole tree is killed. Resolves when it is gone. */
  stop(id: string, deadlineMs: number): Promise<StopReport> {
    return this.#call("stop", { id, deadlineMs }, deadlineMs + ANSWER_WITHIN_MS);
  }

  async list(): Promise<ChildStatus[]> {
    return (await this.#call("list", {})).children;
  }

  /** The services that run inside the keeper, whoever started them. */
  async services(): Promise<ServiceStatus[]> {
    return (await this.#call("list", {})).services;
  }

  /** The last lines of a launch's output. */
  async tail(id: string, lines = 20): Promise<string[]> {
    return (await this.#call("tail", { id, lines })).lines;
  }

  /** Changes the lease, in milliseconds. */
  async setLease(ms: number): Promise<void> {
    await this.#call("lease", { ms });
  }

  async ping(): Promise<void> {
    await this.#call("ping", {});
  }

  /** Forgets the exits up to `seq`. Only to be said when they are durable in the journal. */
  async acknowledge(seq: number): Promise<void> {
    await this.#call("ack", { seq });
  }

  /** Starts a service inside the keeper. @throws KeeperError `keeper-service-failed` */
  startService(id: string, kind: string, options: unknown): Promise<ServiceStatus> {
    return this.#call("service-start", { id, kind, options });
  }

  async stopService(id: string): Promise<boolean> {
    return (await this.#call("service-stop", { id })).stopped;
  }

  /** Stops everything and ends the keeper; resolves when nothing is left but the keeper itself, which then ends. */
  async hostStop(deadlineMs: number): Promise<StopReport> {
    this.#calls.closing = true;
    clearInterval(this.#heart);
    return await this.#call("host-stop", { deadlineMs }, deadlineMs + ANSWER_WITHIN_MS);
  }

  /** Lets go: the lease begins, and a new controller may come. */
  detach(): void {
    this.#calls.closing = true;
    clearInterval(this.#heart);
    this.#lines.end();
  }

  /** Lets the program end while the keeper goes on: the lease begins then. */
  unref(): void {
    this.#lines.unref();
  }

  #call<K extends KeeperCommand>(
    command: K,
    ask: KeeperCommands[K]["ask"],
    withinMs: number = ANSWER_WITHIN_MS,
  ): Promise<KeeperCommands[K]["answer"]> {
    return this.#calls.call(command, ask, withinMs);
  }
}

const silent = (place: KeeperPlace, ms: number): KeeperError =>
  new KeeperError(
    "keeper-silent",
    `nobody answered the hello at ${place.directory} within ${ms} ms: the keeper is dead, stopped or overloaded`,
  );

const same = ({ keeper }: Welcome, expect: ProcessIdentity): boolean =>
  keeper.pid === expect.pid && keeper.startTicks === expect.startTicks &&
  keeper.bootId === expect.bootId;

function withoutEvent(push: { event: "exited" } & ExitEvent): ExitEvent {
  const { event: _, ...exit } = push;
  return exit;
}
