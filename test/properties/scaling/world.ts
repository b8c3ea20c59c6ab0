/**
 * A cluster in memory: the real machines run by the real kernel, simulated engines, and the pure store. Nothing happens by itself;
 * whoever holds the world chooses the next thing that happens among those that can.
 */
import {
  type Input,
  Kernel,
  type KernelEvent,
  rankOf,
  type Stamped,
  SYSTEM,
  type System,
} from "../../../src/kernel/mod.ts";
import type {
  Bootstrap,
  ScalingEffect,
  ScalingResource,
  StoreAddress,
} from "../../../src/machines/effects/scaling.ts";
import { DEFAULT_SCALING_LIMITS, type ScalingOutput } from "../../../src/machines/scaling.ts";
import type { OperationOutput } from "../../../src/machines/operation.ts";
import { type ScalingConfiguration, scalingSystem } from "../../../src/machines/scaling-system.ts";
import {
  decisionKey,
  entryOf,
  epochViewOf,
  errorKey,
  factIn,
  keyOf,
  phaseKey,
} from "../../../src/machines/scaling/store-view.ts";
import {
  type EngineInput,
  type EngineOutput,
  joiningEngine,
  type ScalingEngine,
  servingEngine,
  stepEngine,
} from "../../../src/peers/engine-scaling.ts";
import {
  answered,
  raise,
  stepUpstream,
  type UpstreamAct,
  type UpstreamRank,
  upstreamRank,
} from "../../../src/peers/upstream-rank.ts";
import { StoreTables } from "../../../src/peers/tcpstore.ts";
import { textOf, utf8 } from "../../../src/protocol/tcpstore/mod.ts";

type Order = Stamped<ScalingEffect, ScalingResource> & { kind: "message" | "call" };

/** Something that can happen next. `pace`: ordinary progress, or a deadline that may as well never pass. */
export interface Happening {
  readonly name: string;
  readonly pace: "progress" | "retry" | "deadline";
  readonly run: () => void;
}

export interface WorldOptions {
  readonly size: number;
  readonly maxSize?: number;
  readonly experts?: number;
  /** Ranks whose front-ends are the original's: they are driven from outside (`upstream.ts`). */
  readonly upstream?: readonly number[];
}

interface Reply {
  readonly to: string;
  readonly event: KernelEvent;
}

const CONTROL_PORT = 1000;
export const HOST = "10.0.0.1";

export class World {
  readonly kernel: Kernel<ScalingEffect, ScalingResource> = new Kernel(scalingSystem, {
    verifyEvery: 1,
    memoLimit: 20_000,
  });
  system: System;
  readonly stores: Map<number, StoreTables> = new Map([[CONTROL_PORT, new StoreTables()]]);
  readonly engines: Map<number, ScalingEngine> = new Map();
  /** What was said, for people: one line a happening. */
  readonly trace: string[] = [];
  /** How each rank's part ended, by epoch. */
  readonly outcomes: Map<string, Map<number, ScalingOutput["outcome"]>> = new Map();
  readonly operations: OperationOutput[] = [];
  readonly answers: { operation: string; outcome: string; text: string | null }[] = [];
  readonly violations: string[] = [];
  readonly upstream: ReadonlySet<number>;
  /** Original ranks that were asked to scale. */
  readonly originals: Map<number, UpstreamRank> = new Map();

  /** Effects on their way to the world, and replies on their way back, first in first out per channel. */
  #outbox = new Map<string, Order[]>();
  #inbox = new Map<string, Reply[]>();
  #reported = new Map<string, Set<string>>();
  #met: { rank: number; what: EngineInput & { type: "met" } }[] = [];
  #ports = CONTROL_PORT;
  #epochs = 0;
  #exited = new Set<number>();
  /** Engines that operations named, until they are restarted. */
  #toRestart = new Set<number>();
  /** With which operation's store a new rank was answered: it says HELLO until it is. */
  #greeted = new Map<number, number>();

  constructor(options: WorldOptions) {
    const { size } = options;
    this.upstream = new Set(options.upstream ?? []);
    this.system = this.kernel.empty;
    const expertise = {
      experts: options.experts ?? 8,
      redundant: options.experts === undefined ? 100 : 0,
      maxSize: options.maxSize ?? 6,
    };
    for (let rank = 0; rank < size; rank++) this.engines.set(rank, servingEngine(rank, size));
    const configuration: ScalingConfiguration = {
      type: "configured",
      ranks: [...this.engines.keys()].filter((r) => !this.upstream.has(r)).map((rank) => ({
        rank,
        topology: {
          ...expertise,
          size,
          leader: rank === 0,
          masterIp: HOST,
          control: { host: HOST, port: CONTROL_PORT },
          limits: DEFAULT_SCALING_LIMITS,
          handshake: rank === 0
            ? {
              bind: `tcp://${HOST}:29550`,
              form: "wrapped",
              inputs: ["tcp://in"],
              outputs: ["tcp://out"],
              coordinatorInput: "tcp://c-in",
              coordinatorOutput: "tcp://c-out",
              frontendStatsPublish: null,
            }
            : null,
          hostsControl: rank === 0,
        },
      })),
      operations: {
        ...expertise,
        size,
        settleMs: 60_000,
        newcomer: { limits: DEFAULT_SCALING_LIMITS, engine: null },
        joiner: null,
        watchesEngines: false,
      },
    };
    this.input(SYSTEM, configuration as never);
  }

  // ---- what an operator does ---------------------------------------------------------------------------------

  scale(operation: string, target: number): void {
    this.input("operations", { type: "scaleAsked", operation, target, deadlineMs: 300_000 });
  }

  /** Asks every rank by itself, as the orchestrators of original clusters do: ours commit when they are prepared. */
  scaleEach(target: number): void {
    const oldSize = this.engines.size;
    for (const rank of [...this.engines.keys()]) {
      if (this.upstream.has(rank)) this.originals.set(rank, upstreamRank(rank, oldSize, target));
      else {
        this.input(`rank/${rank}/topology`, {
          type: "prepare",
          operation: "each",
          target,
          remains: rank < target,
          report: "",
          shared: false,
        });
      }
    }
  }

  /** The epoch that the first store names. */
  epoch(): string {
    return this.look({ port: CONTROL_PORT })("elastic_ep/external/current_epoch") ?? "";
  }

  /** Something raises in an original rank. */
  raiseIn(rank: number): void {
    const original = this.originals.get(rank);
    if (original === undefined) return;
    this.trace.push(`original rank ${rank} raises in ${original.stage}`);
    this.originals.set(rank, raise(original, "something raised"));
  }

  abort(): void {
    const running = this.running();
    if (running === null) return;
    this.input("operations", { type: "abortAsked", operation: running, text: "operator" });
  }

  running(): string | null {
    const context = this.context("operations") as { running: { operation: string } | null };
    return context.running?.operation ?? null;
  }

  size(): number {
    return (this.context("operations") as { size: number }).size;
  }

  // deno-lint-ignore no-explicit-any
  context(id: string): any {
    return this.system.instances.get(id)?.state.snapshot.context;
  }

  // ---- what can happen ---------------------------------------------------------------------------------------

  happenings(): Happening[] {
    const list: Happening[] = [];
    const can = (name: string, run: () => void, pace: Happening["pace"] = "progress") =>
      list.push({ name, pace, run });
    for (const [channel, orders] of this.#outbox) {
      if (orders.length > 0) {
        const { from, effect } = orders[0]!;
        can(`${from} ${describe(effect)}`, () => this.#carryOut(channel, true));
      }
    }
    for (const [channel, replies] of this.#inbox) {
      if (replies.length > 0) {
        const { to, event } = replies[0]!;
        can(`${to} hears ${describe(event)}`, () => {
          this.#inbox.get(channel)!.shift();
          this.input(to, event);
        });
      }
    }
    for (const [i, { rank, what }] of this.#met.entries()) {
      can(`engine ${rank} met for ${what.what}`, () => {
        this.#met.splice(i, 1);
        this.#engine(rank, what);
      });
    }
    for (const meeting of this.#meetings()) {
      can(`engines meet for ${meeting.name}`, () => this.#meet(meeting));
    }
    for (const instance of this.system.instances) {
      for (
        const { key, resource } of instance.held as { key: string; resource: ScalingResource }[]
      ) {
        this.#observe(instance.id, key, resource, can);
      }
      for (const { timer, generation } of instance.timers) {
        const pace = timer.includes(".retry.") ? "retry" : "deadline";
        can(`${instance.id} ${timer.slice("xstate.after.".length)} passes`, () => {
          this.input(instance.id, { type: "timer.fired", timer, generation });
        }, pace);
      }
    }
    for (const instance of this.system.instances) {
      for (const call of instance.calls) {
        const effect = call.effect as ScalingEffect;
        if (effect.type !== "engine.call" || !this.#unanswered(instance.id, call.id)) continue;
        const { method } = effect.request;
        can(`${instance.id} waited long enough for ${method}`, () => {
          this.input(instance.id, { type: "utilityLate", method, call: call.id });
        }, "deadline");
      }
    }
    for (const [rank, original] of this.originals) {
      const [next, act] = stepUpstream(original, ...this.#looks(original));
      if (act.do === "wait") continue;
      can(`original rank ${rank} in ${original.stage}: ${actText(act)}`, () => {
        this.originals.set(rank, next);
        if (act.do === "set") {
          const port = act.store === "control" ? CONTROL_PORT : original.bootstrap!.storePort;
          this.set({ port }, act.key, act.value);
        } else if (act.do === "engine") {
          const args = [{ bootstrap: original.bootstrap, leave: act.leave === true, mode: "keep" }];
          this.#engine(rank, { type: "utility", call: "original", method: act.method, args });
        }
      });
    }
    for (const rank of this.#exited) {
      can(`the process of rank ${rank} is seen to end`, () => {
        this.#exited.delete(rank);
        if (this.system.instances.get(`rank/${rank}/topology`) !== undefined) {
          this.input(`rank/${rank}/topology`, { type: "engineLost", text: "exited" });
        }
      });
    }
    return list;
  }

  /** Runs one happening and writes it down. */
  happen(happening: Happening): void {
    this.trace.push(happening.name);
    happening.run();
    this.#check();
  }

  // ---- faults ------------------------------------------------------------------------------------------------

  /**
   * The coordinator of some ranks dies and comes back from its journal. Of what it had asked for, per channel a first part
   * was carried out (as many as `left` says, modulo what there was), the rest is gone; so are replies on their way to it.
   */
  crash(ranks: ReadonlySet<number>, left: readonly number[]): void {
    this.trace.push(`crash of ranks ${[...ranks].join(", ")}`);
    const ours = (id: string) => ranks.has(rankOf(id) ?? -1);
    let n = 0;
    for (const [channel, orders] of this.#outbox) {
      if (orders.length === 0 || !ours(orders[0]!.from)) continue;
      const gone = left.length === 0 ? 0 : left[n++ % left.length]! % (orders.length + 1);
      for (let i = 0; i < gone; i++) this.#carryOut(channel, false);
      this.#outbox.set(channel, []);
    }
    for (const [channel, replies] of this.#inbox) {
      if (replies.length === 0 || !ours(replies[0]!.to)) continue;
      // Frames of engines may be delivered after the reconnect; replies of stores are lost with their connections.
      const kept = channel.startsWith("engine") && left.length > 0 &&
        left[n++ % left.length]! % 2 === 1;
      if (!kept) this.#inbox.set(channel, []);
    }
    for (const instance of [...this.system.instances]) {
      if (!ours(instance.id)) continue;
      for (const { key } of instance.held) this.#reported.delete(`${instance.id} ${key}`);
      for (const call of instance.calls) {
        const effect = call.effect as ScalingEffect;
        if (effect.type === "engine.call") {
          const { method } = effect.request;
          this.#reply(`local:${instance.id}`, instance.id, {
            type: "utilityUnknown",
            method,
            call: call.id,
          });
        } else {
          this.#ask({ id: call.id, from: instance.id, kind: "call", effect, slot: call.slot });
        }
      }
    }
    this.#check();
  }

  /** A store does not answer a call: it may have carried it out (its reply is lost), or not. */
  loseStoreReply(pick: number): void {
    const calls = [...this.#outbox].filter(([channel, q]) =>
      channel.startsWith("store") && q.length > 0
    );
    const replies = [...this.#inbox].filter(([channel, q]) =>
      channel.startsWith("store") && q.length > 0
    );
    const all = [
      ...calls.map(([channel]) => ({ channel, carried: false })),
      ...replies.map(([channel]) => ({ channel, carried: true })),
    ];
    if (all.length === 0) return;
    const { channel, carried } = all[pick % all.length]!;
    const failed = { type: "storeFailed", store: "control", text: "no answer" };
    if (carried) {
      const [{ to, event }, ...rest] = this.#inbox.get(channel) as [Reply, ...Reply[]];
      this.trace.push(`${to} does not hear ${describe(event)}`);
      this.#inbox.set(channel, [{ to, event: { ...failed, call: event["call"] } }, ...rest]);
    } else {
      const order = this.#outbox.get(channel)!.shift()!;
      this.trace.push(`${order.from} does not reach the store: ${describe(order.effect)}`);
      this.#reply(channel, order.from, { ...failed, call: order.id });
    }
  }

  /** An engine's process dies. */
  killEngine(rank: number): void {
    const engine = this.engines.get(rank);
    if (engine === undefined || engine.gone) return;
    this.trace.push(`engine ${rank} dies`);
    this.engines.set(rank, { ...engine, gone: true, meetings: [] });
    this.#exited.add(rank);
    this.#inbox.set(`engine:${rank}`, []);
  }

  /** What launchers do after an operation: named engines, and dead ones of ranks that remain, start anew. */
  restartEngines(): void {
    const size = this.size();
    for (let rank = 0; rank < size; rank++) {
      const topology = this.context(`rank/${rank}/topology`) as { size: number } | undefined;
      const engine = this.engines.get(rank);
      const named = this.#toRestart.has(rank);
      if (named || engine === undefined || engine.gone) {
        this.engines.set(rank, servingEngine(rank, topology?.size ?? size));
        this.#inbox.delete(`engine:${rank}`);
        this.#met = this.#met.filter((m) => m.rank !== rank);
        this.input(`rank/${rank}/topology`, { type: "engineRestarted" });
      }
    }
    for (const rank of [...this.engines.keys()]) if (rank >= size) this.engines.delete(rank);
    this.#toRestart.clear();
  }

  /**
   * A fair rest: everything that can happen does, and deadlines pass only when nothing else can. Ends when no operation runs.
   *
   * @returns whether it came to rest.
   */
  rest(limit = 5_000): boolean {
    for (let n = 0; n < limit; n++) {
      const all = this.happenings();
      const next = all.find((h) => h.pace === "progress") ?? all.find((h) => h.pace === "retry");
      if (next !== undefined) this.happen(next);
      else if (this.busy()) {
        const deadline = all.find((h) => h.pace === "deadline");
        if (deadline === undefined) return false;
        this.happen(deadline);
      } else return true;
    }
    return false;
  }

  /** Whether an operation runs, or a rank's part of one. */
  busy(): boolean {
    return this.running() !== null ||
      [...this.system.instances].some((i) => i.chart === "scaling" || i.chart === "operation");
  }

  // ---- the machines ------------------------------------------------------------------------------------------

  input(to: string, event: KernelEvent): void {
    const input: Input = { seq: this.system.seq + 1, at: this.system.seq * 10, to, event };
    const result = this.kernel.step(this.system, input);
    this.system = result.system;
    for (const note of result.notes) {
      if (note.kind === "failed" || note.kind === "unexpected") {
        this.violations.push(`${note.kind} at ${note.instance}: ${note.what} ${note.text ?? ""}`);
      }
    }
    for (const { event, chart, instance } of result.transitions) {
      if (event.type !== "ended") continue;
      const output = event["output"] as ScalingOutput & OperationOutput;
      if (chart === "topology" && event["chart"] === "scaling") this.#noteEnd(instance, output);
      if (chart === "operations") this.#noteOperation(output);
    }
    for (const stamped of result.effects) {
      if (stamped.kind === "call" || stamped.kind === "message") this.#ask(stamped as Order);
      else if (stamped.kind === "hold" || stamped.kind === "release") {
        this.#reported.delete(`${stamped.from} ${stamped.key}`);
      }
    }
  }

  #noteEnd(topology: string, output: ScalingOutput): void {
    if (output.epoch === "") return;
    const rank = rankOf(topology)!;
    const ranks = this.outcomes.get(output.epoch) ?? new Map();
    this.outcomes.set(output.epoch, ranks);
    ranks.set(rank, output.outcome);
    this.trace.push(`  rank ${rank} ${output.outcome}: ${output.cause?.text ?? ""}`);
  }

  #noteOperation(output: OperationOutput): void {
    this.operations.push(output);
    for (const rank of output.enginesToRestart) this.#toRestart.add(rank);
    this.trace.push(
      `  operation ${output.operation} ${output.outcome}: ${output.firstError?.text ?? ""}`,
    );
  }

  // ---- the world ---------------------------------------------------------------------------------------------

  #ask(order: Order): void {
    const { effect, from } = order;
    if (effect.type === "operation.answer") {
      this.answers.push(effect);
      return;
    }
    const rank = rankOf(from);
    const channel = effect.type === "engine.call"
      ? `engine:${rank}`
      : "at" in effect
      ? `store:${rank}:${effect.at.port}`
      : `local:${from}`;
    const queue = this.#outbox.get(channel) ?? [];
    this.#outbox.set(channel, [...queue, order]);
  }

  #reply(channel: string, to: string, event: KernelEvent): void {
    this.#inbox.set(channel, [...this.#inbox.get(channel) ?? [], { to, event }]);
  }

  /** Carries out the first order of a channel; `answered` is false when whoever asked is gone by then. */
  #carryOut(channel: string, answered: boolean): void {
    const { id, from, effect, kind } = this.#outbox.get(channel)!.shift()!;
    const outcome = (event: KernelEvent) => {
      if (answered && kind === "call") this.#reply(channel, from, { ...event, call: id });
    };
    const rank = rankOf(from)!;
    switch (effect.type) {
      case "store.lookUp":
        return outcome({ type: "epochRead", view: epochViewOf(this.look(effect.at)) as never });
      case "store.check": {
        const look = this.look(effect.at);
        const keys = effect.key === "eep_ready" ? [`eep_ready/${rank}`] : [
          keyOf("old_rank_finished", effect.epoch, rank),
          keyOf("shutdown_complete", effect.epoch, rank),
        ];
        const found = keys.some((key) => look(key) !== undefined);
        return outcome({ type: found ? "keyFound" : "keyAbsent" });
      }
      case "store.write":
        for (const set of effect.sets) {
          this.set(effect.at, ...entryOf(set, effect.epoch, rank));
        }
        return outcome({ type: "written", store: effect.store });
      case "store.decide": {
        const decided = this.compareSet(effect.at, decisionKey(effect.epoch), effect.propose);
        return outcome({ type: "decided", epoch: effect.epoch, outcome: decided });
      }
      case "store.fail":
        this.compareSet(effect.at, errorKey(effect.epoch), effect.text);
        this.set(effect.at, phaseKey(effect.epoch), "failed");
        return outcome({ type: "failureWritten", store: effect.store });
      case "store.serve": {
        const port = ++this.#ports;
        this.stores.set(port, new StoreTables());
        return outcome({ type: "storeServing", address: { host: HOST, port } });
      }
      case "scaling.draw":
        return outcome({
          type: "drawn",
          epoch: (++this.#epochs).toString(16).padStart(32, "e"),
          masterPort: 7000,
          masterPorts: [7001, 7002, 7003, 7004],
        });
      case "engine.call": {
        const { method, ...args } = effect.request;
        if (method === "pause_scheduler") this.#checkVotes(from);
        this.#engine(
          rank,
          { type: "utility", call: answered ? id : "", method, args: [args] },
          from,
        );
        return;
      }
      case "scaleUp.init": {
        // The socket may be closed by now.
        const part = [...this.system.instances].find((i) =>
          i.chart === "scaling" && rankOf(i.id) === 0
        );
        const bootstrap = (part && this.context(part.id))?.bootstrap as Bootstrap | undefined;
        if (bootstrap === undefined) return;
        this.#met = this.#met.filter((m) => m.rank !== effect.rank);
        this.#greeted.set(effect.rank, bootstrap.storePort);
        this.engines.set(effect.rank, joiningEngine(effect.rank, bootstrap));
        return;
      }
      default:
        throw new Error(`the world does not know ${effect.type}`);
    }
  }

  #engine(rank: number, input: EngineInput, from = ""): void {
    const engine = this.engines.get(rank);
    if (engine === undefined) return;
    const [next, outputs] = stepEngine(engine, input);
    this.engines.set(rank, next);
    const channel = `engine:${rank}`;
    for (const output of outputs) {
      if (this.#forOriginal(rank, output)) continue;
      if (output.type === "reply" && output.call !== "") {
        const method = input.type === "utility" ? input.method : "";
        this.#reply(channel, this.#caller(output.call, from), {
          type: "utilityReplied",
          method,
          value: output.value,
          call: output.call,
        });
      } else if (output.type === "failure" && output.call !== "") {
        this.#reply(channel, this.#caller(output.call, from), {
          type: "utilityFailed",
          method: input.type === "utility" ? input.method : "",
          failure: output.text,
          call: output.call,
        });
      } else if (output.type === "notify") {
        this.#reply(channel, `rank/${rank}/topology`, {
          type: "notified",
          notification: output.notification === "RECONFIGURE_FINISHED"
            ? "reconfigureFinished"
            : "shutdownComplete",
        });
      } else if (output.type === "ready") {
        const at = { host: HOST, port: output.bootstrap.storePort };
        this.set(at, `eep_ready/${rank}`, "1");
      } else if (output.type === "exit") {
        this.#exited.add(rank);
      } else if (output.type === "handshakeReady") {
        this.#reply(`new:${rank}`, "rank/0/greeting", {
          type: "ready",
          rank,
          local: true,
          headless: false,
          hash: null,
        });
      }
    }
  }

  #looks(
    original: UpstreamRank,
  ): [(key: string) => string | undefined, (key: string) => string | undefined] {
    return [
      this.look({ port: CONTROL_PORT }),
      this.look({ port: original.bootstrap?.storePort ?? 0 }),
    ];
  }

  #forOriginal(rank: number, output: EngineOutput): boolean {
    const original = this.originals.get(rank);
    if (original === undefined) return false;
    if (output.type === "reply") this.originals.set(rank, answered(original, "reply"));
    else if (output.type === "failure") {
      this.originals.set(rank, answered(original, "failure", output.text));
    } else if (output.type === "notify") this.originals.set(rank, answered(original, "notified"));
    else return false;
    return true;
  }

  /** The engine has the call, and no reply is on its way. */
  #unanswered(instance: string, call: string): boolean {
    const rank = rankOf(instance)!;
    return !(this.#outbox.get(`engine:${rank}`) ?? []).some((o) => o.id === call) &&
      ![...this.#inbox.values()].flat().some((r) => r.event["call"] === call);
  }

  /** Who asked; a call that was answered late may be of an instance that is gone. */
  #caller(call: string, from: string): string {
    if (from !== "") return from;
    for (const { id, calls } of this.system.instances) {
      if (calls.some((c) => c.id === call)) return id;
    }
    return "nobody";
  }

  *#meetings(): Generator<{ what: EngineInput & { type: "met" }; ranks: number[]; name: string }> {
    const seen = new Set<string>();
    for (const engine of this.engines.values()) {
      for (const { what, size } of engine.meetings) {
        const name = `${what} of ${size}`;
        if (seen.has(name)) continue;
        seen.add(name);
        const ranks = Array.from({ length: size }, (_, r) => r);
        const there = ranks.every((r) =>
          this.engines.get(r)?.meetings.some((m) => m.what === what && m.size === size) ?? false
        );
        if (there && !this.#met.some((m) => m.what.what === what)) {
          yield { what: { type: "met", what }, ranks, name };
        }
      }
    }
  }

  #meet({ what, ranks }: { what: EngineInput & { type: "met" }; ranks: number[] }): void {
    for (const rank of ranks) this.#met.push({ rank, what });
  }

  #observe(
    holder: string,
    key: string,
    resource: ScalingResource,
    can: (name: string, run: () => void) => void,
  ): void {
    const reported = this.#reported.get(`${holder} ${key}`) ?? new Set<string>();
    const once = (what: string, to: string, event: KernelEvent) => {
      if (reported.has(what)) return;
      can(`${to} hears ${describe(event)}`, () => {
        this.#reported.set(`${holder} ${key}`, new Set([...reported, what]));
        this.input(to, event);
      });
    };
    if (resource.type === "store.facts") {
      const look = this.look(resource.at);
      for (const fact of resource.facts) {
        const event = factIn(look, fact, resource);
        // Completion is reported before an error that is there too.
        if (
          event !== undefined && !(fact === "error" && !reported.has("completed") &&
            resource.facts.includes("completed") &&
            factIn(look, "completed", resource) !== undefined)
        ) {
          once(fact, holder, event as never);
        }
      }
    } else if (resource.type === "store.epoch") {
      const view = epochViewOf(this.look(resource.at));
      if (view !== null) once(JSON.stringify(view), holder, { type: "epochSeen", view } as never);
    } else if (resource.type === "socket.scaleUp") {
      once("listening", holder, { type: "listening", endpoint: resource.bind });
      const context = this.context(holder) as { first: number; last: number };
      for (let rank = context.first; rank <= context.last; rank++) {
        const { _coord_store_port: port } = resource.reply.parallelConfig;
        if (reported.has("listening") && this.#greeted.get(rank) !== port) {
          once(`hello ${rank}`, holder, { type: "hello", rank, local: true, headless: false });
        }
      }
    }
  }

  // ---- the stores --------------------------------------------------------------------------------------------

  look(at: Pick<StoreAddress, "port">): (key: string) => string | undefined {
    const tables = this.stores.get(at.port);
    return (key) => tables?.keys.get(key);
  }

  set(at: Pick<StoreAddress, "port">, key: string, value: string): void {
    this.stores.get(at.port)?.serve("world", { op: "set", key, value }, () => {});
  }

  compareSet(at: Pick<StoreAddress, "port">, key: string, desired: string): string {
    let held = "";
    this.stores.get(at.port)?.serve(
      "world",
      { op: "compareSet", key, expected: "", desired: utf8(desired) },
      (_, reply) => held = reply.kind === "value" ? textOf(reply.value) : "",
    );
    return held;
  }

  // ---- what has to hold --------------------------------------------------------------------------------------

  #violate(text: string): void {
    if (!this.violations.includes(text)) this.violations.push(text);
  }

  #checkVotes(from: string): void {
    type Part = { epoch: string; oldSize: number; bootstrap: Bootstrap };
    const context = this.context(from) as Part | undefined;
    if (context === undefined) return; // its part ended while the call was on its way
    const look = this.look({ port: context.bootstrap.storePort });
    const watched = { ...context, target: 0 };
    if (factIn(look, "everyoneVoted", watched) === undefined) {
      this.#violate(`${from} pauses although not every old rank has voted`);
    }
  }

  #check(): void {
    for (const [port, tables] of this.stores) {
      const epochs = new Map<string, Set<string>>();
      for (const key of tables.keys.keys()) {
        const parts = key.split("/");
        if (parts[0] !== "elastic_ep" || parts.length < 4 || parts[2] === "operation") continue;
        const kinds = epochs.get(parts[2]!) ?? new Set<string>();
        epochs.set(parts[2]!, kinds.add(parts[3]!));
      }
      const open = [...epochs].filter(([, k]) =>
        k.has("prepared") && !k.has("error") && !k.has("completed")
      );
      if (open.length > 1) {
        this.#violate(`store ${port} holds ${open.length} epochs without an end`);
      }
      const current = tables.keys.get("elastic_ep/external/current_epoch");
      if (current !== undefined) {
        const kinds = epochs.get(current);
        if (!kinds?.has("bootstrap") || !kinds.has("phase")) {
          this.#violate(`store ${port} names epoch ${current} without its record`);
        }
      }
      for (const [epoch, kinds] of epochs) {
        if (!kinds.has("completed") || !kinds.has("bootstrap")) continue;
        const reconfig = [...this.stores.values()].find((t) =>
          t.keys.has(keyOf("commit_ready", epoch, 0))
        );
        const voters = [...reconfig?.keys.keys() ?? []].filter((k) =>
          k.includes(`${epoch}/commit_ready/`)
        );
        const finished = [...reconfig?.keys.keys() ?? []].filter((k) =>
          k.includes(`${epoch}/old_rank_finished/`) || k.includes(`${epoch}/shutdown_complete/`)
        );
        if (finished.length < voters.length || voters.length === 0) {
          this.#violate(
            `epoch ${epoch} is completed although only ${finished.length} of ${voters.length} old ranks finished`,
          );
        }
      }
    }
    for (const [epoch, ranks] of this.outcomes) {
      const values = new Set(ranks.values());
      if (values.has("completed") && values.has("failed")) {
        this.#violate(`epoch ${epoch} completed on one rank and failed on another`);
      }
    }
  }
}

const actText = (act: UpstreamAct): string =>
  act.do === "set"
    ? `sets ${act.key.split("/").slice(-2).join("/")}`
    : act.do === "engine"
    ? act.method
    : "goes on";

function describe(effect: { readonly type: string }): string {
  const { type, ...rest } = effect as Record<string, unknown>;
  const text = type === "engine.call"
    ? (rest["request"] as { method: string }).method
    : type === "store.write"
    ? `writes ${(rest["sets"] as { key: string }[]).map((s) => s.key).join(", ")} on ${
      rest["store"]
    }`
    : type === "store.decide"
    ? `proposes ${rest["propose"]}`
    : `${type} ${rest["text"] ?? rest["store"] ?? rest["method"] ?? rest["outcome"] ?? ""}`;
  return text.trim();
}
