/** A reference engine that serves: the pure core over the sockets of the bus, the coordinator, and its group. */
import {
  type CoreBehaviour,
  type CoreEngine,
  coreEngine,
  type CoreInput,
  type CoreOutput,
  isStepping,
  stepCore,
} from "../peers/engine-core.ts";
import type { Meeting, ScalingEngine } from "../peers/engine-scaling.ts";
import {
  addFacts,
  decodeCoordinatorFrames,
  decodeEngineRequest,
  encodeEngineOutputs,
  encodeFirstFrame,
  ENGINE_CORE_DEAD,
  type EngineAddresses,
  type EngineFacts,
  type Json,
  KEEP_CURRENT_RANK,
  type OutputsToSend,
  reconfigureRequestOf,
  scalingNotification,
  SHUTDOWN_CURRENT_RANK,
  SUBSCRIBE_ALL,
  utilityReply,
  type WireRank,
} from "../protocol/mod.ts";
import { EngineGroup } from "./engine-group.ts";
import { TcpStoreClient } from "./tcpstore/mod.ts";
import type { Frames } from "./zmq/readiness.ts";
import {
  connectDealer,
  connectPush,
  connectXSubscriber,
  type Context,
  type ZmqSocket,
} from "./zmq/sockets.ts";

export interface ServingOptions {
  readonly rank: WireRank;
  readonly size: number;
  readonly addresses: EngineAddresses;
  /** Where the ranks meet; null for an engine that runs by itself (dense models). */
  readonly group: { readonly host: string; readonly port: number } | null;
  readonly behaviour: CoreBehaviour;
  /** What the first frame tells; null for the empty frame of older releases. */
  readonly facts: EngineFacts | null;
  /** Milliseconds a scheduler step takes. */
  readonly stepMs: number;
  /** Tokens that a request produces when its sampling parameters are not read. */
  readonly tokens: number;
  /** A rank that joins a serving group. */
  readonly joining?: ScalingEngine;
  readonly context?: Context;
  readonly say?: (text: string) => void;
  readonly exit: (code: number, text: string) => void;
  /** READY of the handshake, for a rank that joins. */
  readonly handshakeReady?: () => void;
}

export class ServingEngine {
  readonly #options: ServingOptions;
  readonly #dealers: ZmqSocket[] = [];
  readonly #outputs: ZmqSocket[] = [];
  #reports: ZmqSocket | undefined;
  #subscriber: ZmqSocket | undefined;
  #core: CoreEngine;
  #group: Promise<EngineGroup>;
  /** The group that a reconfiguration forms, until it is switched to. */
  #nextGroup: Promise<EngineGroup> | undefined;
  #stores: TcpStoreClient[] = [];
  #pauses = 0;
  #stepTimer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  #ready: () => void = () => {};

  constructor(options: ServingOptions) {
    this.#options = options;
    const { rank, size, behaviour, joining } = options;
    this.#core = coreEngine(rank, size, behaviour, joining);
    this.#group = this.#form(size, options.group);
    this.#group.catch(() => {});
  }

  /** Connects to everybody and resolves when the coordinator, if there is one, has said READY (4.2, 5.2). */
  async join(): Promise<void> {
    const { rank, addresses, facts, context, say = () => {} } = this.#options;
    const shared = context === undefined ? {} : { context };
    for (const [client, address] of addresses.inputs.entries()) {
      const dealer = connectDealer({
        rank,
        address,
        lingerMs: 4000,
        ...shared,
        onMessage: (frames) => this.#request(client, frames),
      });
      this.#dealers.push(dealer);
      void dealer.send([encodeFirstFrame({ type: "first-frame", facts })]);
    }
    for (const address of addresses.outputs) {
      this.#outputs.push(connectPush({ address, lingerMs: 4000, ...shared }));
    }
    if (addresses.coordinatorOutput !== null) {
      this.#reports = connectPush({
        address: addresses.coordinatorOutput,
        lingerMs: 4000,
        ...shared,
      });
    }
    if (addresses.coordinatorInput !== null) {
      say("waiting for READY of the coordinator");
      const ready = new Promise<void>((resolve) => this.#ready = resolve);
      this.#subscriber = connectXSubscriber({
        address: addresses.coordinatorInput,
        ...shared,
        onMessage: (frames) => this.#coordinated(frames),
      });
      void this.#subscriber.send([SUBSCRIBE_ALL]);
      await ready;
    }
  }

  /** Begins to work: a rank that joins goes on with what it meets the others for. */
  begin(): void {
    for (const meeting of this.#core.scaling.meetings) {
      void this.#meet(meeting, false);
    }
  }

  get state(): CoreEngine {
    return this.#core;
  }

  /** Says that it dies, to every front-end, as a real engine does when its loop raises. */
  async die(): Promise<void> {
    await Promise.all(this.#outputs.map((o) => o.send([ENGINE_CORE_DEAD])));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#stepTimer);
    for (const s of [...this.#dealers, ...this.#outputs]) s.close();
    this.#reports?.close();
    this.#subscriber?.close();
    for (const store of this.#stores) store.close();
    await (await this.#group.catch(() => undefined))?.close();
    await (await this.#nextGroup?.catch(() => undefined))?.close();
  }

  // ---- what arrives ----------------------------------------------------------------------------------------

  #request(client: number, frames: Frames): void {
    const request = decodeEngineRequest(frames);
    if (!request.ok) return this.#options.say?.(`refused: ${request.refusal.text}`);
    const { value } = request;
    if (value.type === "add") {
      const facts = addFacts(frames[1]!);
      if (!facts.ok) return this.#options.say?.(`refused: ${facts.refusal.text}`);
      const { requestId, currentWave, clientIndex } = facts.value;
      return this.#feed({
        type: "add",
        request: requestId,
        client: clientIndex,
        wave: currentWave,
        tokens: this.#options.tokens,
      });
    }
    if (value.type === "abort") return this.#feed({ type: "abort", requests: value.requestIds });
    this.#feed({
      type: "utility",
      client: value.clientIndex < this.#outputs.length ? value.clientIndex : client,
      call: value.callId,
      method: value.method,
      args: argumentsOf(value.method, value.args),
    });
  }

  #coordinated(frames: Frames): void {
    const message = decodeCoordinatorFrames(frames);
    if (!message.ok) return;
    if (message.value.type === "coordinator-ready") return this.#ready();
    const { wave, exclude, excludeAs } = message.value;
    // A real engine compares with its integer index: an identity never matches.
    this.#feed({ type: "startWave", wave, exclude: excludeAs === "index" ? exclude : null });
  }

  #feed(input: CoreInput): void {
    if (this.#closed) return;
    const [next, outputs] = stepCore(this.#core, input);
    this.#core = next;
    for (const output of outputs) this.#say(output);
    this.#keepStepping();
  }

  #keepStepping(): void {
    if (this.#stepTimer !== undefined || !isStepping(this.#core)) return;
    this.#stepTimer = setTimeout(() => {
      this.#stepTimer = undefined;
      this.#feed({ type: "step" });
    }, this.#options.stepMs);
  }

  // ---- what is said ----------------------------------------------------------------------------------------

  #say(output: CoreOutput): void {
    switch (output.type) {
      case "token":
        return this.#toClient(output.client, {
          outputs: [{
            requestId: output.request,
            newTokenIds: output.finish === "abort" ? [] : [1],
            finishReason: output.finish,
          }],
          ...(output.finish === null ? {} : { finishedRequests: [output.request] }),
        });
      case "stats": {
        const { running, waiting, kvCacheUsage, wave, step } = output;
        return this.#report({
          schedulerStats: { running, waiting, kvCacheUsage, currentWave: wave, stepCounter: step },
        });
      }
      case "reply":
        return this.#toClient(output.client, {
          utilityOutput: utilityReply.of(output.call, output.value as Json),
        });
      case "failure":
        return this.#toClient(output.client, {
          utilityOutput: { callId: output.call, failure: output.text, result: null },
        });
      case "waveComplete":
        return this.#report({ waveComplete: output.wave });
      case "startWave":
        return this.#report({ startWave: output.wave });
      case "agree": {
        const what = `agree-${this.#pauses}`;
        return void this.#together(
          this.#group,
          what,
          output.busy,
          (busy) => this.#feed({ type: "agreed", round: output.round, busy }),
        );
      }
      case "meet":
        return void this.#meet(output.meeting, output.busy);
      case "notify":
        return this.#toClient(0, {
          utilityOutput: scalingNotification(output.notification, this.#options.rank),
        });
      case "ready":
        return void this.#writeReady(output.bootstrap.masterIp, output.bootstrap.storePort);
      case "handshakeReady":
        return this.#options.handshakeReady?.();
      case "exit":
        return this.#options.exit(output.code, "left the group");
    }
  }

  #toClient(client: number, message: Omit<OutputsToSend, "engineIndex">): void {
    const engineIndex = this.#options.rank;
    void this.#outputs[client]?.send([encodeEngineOutputs({ engineIndex, ...message })]);
  }

  /** To the coordinator; where there is none, to the own front-end. */
  #report(message: Omit<OutputsToSend, "engineIndex">): void {
    const engineIndex = this.#options.rank;
    const to = this.#reports ?? this.#outputs[0];
    void to?.send([encodeEngineOutputs({ engineIndex, ...message })]);
  }

  // ---- what engines do together ----------------------------------------------------------------------------

  #form(size: number, group: { host: string; port: number } | null): Promise<EngineGroup> {
    const { rank } = this.#options;
    return EngineGroup.form({
      rank,
      size: group === null ? 1 : size,
      host: group?.host ?? "",
      port: group?.port ?? 0,
    });
  }

  async #meet({ what, size }: Meeting, busy: boolean): Promise<void> {
    const { reconfiguration } = this.#core.scaling;
    let group = this.#group;
    if (reconfiguration !== null && (what === "form" || what === "switch")) {
      const { masterIp, masterPort } = reconfiguration.bootstrap;
      this.#nextGroup ??= this.#form(size, { host: masterIp, port: masterPort });
      group = this.#nextGroup;
    }
    await this.#together(group, what, busy, (anyBusy) => {
      if (what === "pause") this.#pauses++;
      if (what === "switch" && this.#nextGroup !== undefined) {
        const left = this.#group;
        void left.then((g) => setTimeout(() => void g.close(), 2000), () => {});
        this.#group = this.#nextGroup;
        this.#nextGroup = undefined;
      }
      this.#feed({ type: "met", what, busy: anyBusy });
    });
  }

  async #together(
    group: Promise<EngineGroup>,
    what: string,
    busy: boolean,
    then: (busy: boolean) => void,
  ): Promise<void> {
    try {
      const any = await (await group).meet(what, busy);
      if (!this.#closed) then(any);
    } catch (error) {
      if (this.#closed) return;
      this.#options.say?.(`the group is broken (${what}): ${(error as Error).message}`);
    }
  }

  /** At its commit point an engine sets `eep_ready/<rank>` in the store of the operation (7.3). */
  async #writeReady(host: string, port: number): Promise<void> {
    try {
      const store = await TcpStoreClient.connect({ host, port, timeoutMs: 30_000 });
      this.#stores.push(store);
      await store.set(`eep_ready/${this.#options.rank}`, "1", { confirm: true });
    } catch (error) {
      this.#options.say?.(`eep_ready cannot be written: ${(error as Error).message}`);
    }
  }
}

/** The argument of `reinitialize_distributed` as the pure engine knows it; everything else as it came. */
function argumentsOf(method: string, args: readonly Json[]): readonly unknown[] {
  if (method !== "reinitialize_distributed") return args;
  const request = reconfigureRequestOf(args[0] ?? null);
  if (!request.ok) return args;
  const r = request.value;
  return [{
    bootstrap: {
      size: r.newDataParallelSize,
      masterIp: r.newDataParallelMasterIp,
      masterPort: r.newDataParallelMasterPort,
      masterPorts: r.newDataParallelMasterPortList ?? [],
      storePort: r.coordStorePort ?? 0,
    },
    leave: r.newDataParallelRank === SHUTDOWN_CURRENT_RANK,
    keep: r.newDataParallelRank === KEEP_CURRENT_RANK,
  }];
}
