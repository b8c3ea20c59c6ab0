/**
 * The bus between one front-end and its engines (wire spec, section 4): requests and utility calls out, first frames,
 * replies, notifications, waves and statistics in.
 *
 * Data in, data out: it knows ranks and call ids, and decides nothing. Every call ends in exactly one outcome, at the
 * latest at its deadline (the original has none) or when the bus is closed; a reply that nobody asked for is counted. No
 * frame ends it.
 */
import {
  decodeEngineOutputs,
  type EngineOutputs,
  type SchedulerStats,
} from "../../protocol/engine-outputs.ts";
import { encodeUtilityRequest } from "../../protocol/engine-requests.ts";
import { decodeFirstFrame, type EngineFacts } from "../../protocol/first-frame.ts";
import { decodeIdentity, encodeIdentity } from "../../protocol/identity.ts";
import type { Json } from "../../protocol/json.ts";
import { classifyUtilityOutput, type UtilityEvent } from "../../protocol/notifications.ts";
import { type WireRank, wireRank } from "../../protocol/ranks.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { Utility } from "../../protocol/utilities.ts";
import { RankLimit } from "./rank-limit.ts";
import type { Frames } from "./readiness.ts";
import { bindPull, bindRouter, type Context, type Sent } from "./sockets.ts";
import { StrangerCounter, type Strangers } from "./strangers.ts";

/** What an engine says unasked. */
export type Notification = Exclude<UtilityEvent, { type: "reply" }>;

/** The end of one utility call. */
export type CallOutcome =
  | { readonly type: "replied"; readonly value: Json }
  /** The engine's own words; `unasked`: not the engine's. */
  | { readonly type: "failed"; readonly failure: string; readonly unasked?: true }
  /** No reply within the deadline. `delivered`: whether the request left at all; if not, why. */
  | {
    readonly type: "late";
    readonly afterMs: number;
    readonly delivered: boolean;
    readonly why: string | null;
  }
  /** The bus was closed, or nobody waits any more. */
  | { readonly type: "abandoned" };

export interface EngineBusOptions {
  /** Where the input ROUTER and the output PULL are bound. */
  readonly input: string;
  readonly output: string;
  /** This front-end's position among the API servers. */
  readonly clientIndex: number;
  /** Whether a rank belongs here; asked for every frame. */
  readonly expects: (rank: WireRank) => boolean;
  /** An engine can be reached from now on; facts are null in old releases. */
  readonly onFirstFrame: (rank: WireRank, facts: EngineFacts | null) => void;
  readonly onNotification: (rank: WireRank, notification: Notification) => void;
  /** Some engine says that it is dying; the frame does not say which. */
  readonly onEngineDead: () => void;
  /** Without a coordinator, engines tell their own front-end about waves. */
  readonly onWave?: (
    rank: WireRank,
    wave: { readonly waveComplete: number } | { readonly startWave: number },
  ) => void;
  /** Superseded by the next of the same rank: an observation. */
  readonly onStats?: (rank: WireRank, stats: SchedulerStats) => void;
  /** Outputs of requests, as they came, to be passed on. */
  readonly onOutputs?: (outputs: EngineOutputs, frames: Frames) => void;
  /** A rank that belongs here sent a first frame that cannot be read. */
  readonly onMalformed: (rank: WireRank, refusal: Refusal) => void;
  readonly onStrangers: (strangers: Strangers) => void;
  readonly context?: Context;
}

/** A call on its way. */
export interface Call {
  readonly rank: WireRank;
  /** 64 bits as decimal text; a second call with the id of an open one is a mistake and throws. */
  readonly callId: string;
  readonly utility: Utility;
  /** Absent: somebody else watches the time, and abandons the call. */
  readonly deadlineMs?: number;
}

export interface EngineBus {
  readonly endpoints: { readonly input: string; readonly output: string };
  /** Calls a utility of one rank. Never rejects. */
  call(call: Call): Promise<CallOutcome>;
  /** The outcome of this call is of no use any more. Answers why it has not left yet; null when it has. */
  abandon(callId: string): string | null;
  /** A request or an ABORT, as frames behind the identity. */
  send(rank: WireRank, frames: Frames): Promise<Sent>;
  /** How many calls are open. */
  readonly openCalls: number;
  /** Ends every open call, and gives the addresses back. */
  close(): void;
}

/** A ROUTER can address an engine after its first frame, or after it has reconnected: until then a call is tried again. */
const RETRY_MS = 50;

interface OpenCall {
  readonly call: Call;
  readonly startedAt: number;
  readonly settle: (outcome: CallOutcome) => void;
  delivered: boolean;
  why: string | null;
  deadline: ReturnType<typeof setTimeout> | undefined;
  retry: ReturnType<typeof setTimeout> | undefined;
}

/** Binds both sockets; rejects with `BindError`, `AddressError` or `IpcPathHeldError`, and then leaves nothing bound. */
export async function bindEngineBus(options: EngineBusOptions): Promise<EngineBus> {
  const bus = new Bus(options);
  await bus.bind();
  return bus;
}

class Bus implements EngineBus {
  readonly #options: EngineBusOptions;
  readonly #strangers: StrangerCounter;
  readonly #calls = new Map<string, OpenCall>();
  readonly #limit = new RankLimit();
  #input: Awaited<ReturnType<typeof bindRouter>> | undefined;
  #output: Awaited<ReturnType<typeof bindPull>> | undefined;

  constructor(options: EngineBusOptions) {
    this.#options = options;
    this.#strangers = new StrangerCounter(options.onStrangers);
  }

  async bind(): Promise<void> {
    const shared = this.#options.context === undefined ? {} : { context: this.#options.context };
    this.#input = await bindRouter({
      ...shared,
      address: this.#options.input,
      onMessage: (frames) => this.#firstFrame(frames),
    });
    try {
      this.#output = await bindPull({
        ...shared,
        address: this.#options.output,
        onMessage: (frames) => this.#outputs(frames),
      });
    } catch (error) {
      this.#input.close();
      throw error;
    }
  }

  get endpoints(): { input: string; output: string } {
    return { input: this.#input!.endpoint, output: this.#output!.endpoint };
  }

  get openCalls(): number {
    return this.#calls.size;
  }

  call(call: Call): Promise<CallOutcome> {
    if (this.#calls.has(call.callId)) throw new Error(`call ${call.callId} is already on its way`);
    return new Promise((resolve) => {
      const open: OpenCall = {
        call,
        startedAt: performance.now(),
        settle: resolve,
        delivered: false,
        why: null,
        deadline: undefined,
        retry: undefined,
      };
      this.#calls.set(call.callId, open);
      if (call.deadlineMs !== undefined) {
        open.deadline = setTimeout(() => {
          const afterMs = Math.round(performance.now() - open.startedAt);
          this.#end(open, { type: "late", afterMs, delivered: open.delivered, why: open.why });
        }, call.deadlineMs);
      }
      void this.#request(open);
    });
  }

  abandon(callId: string): string | null {
    const open = this.#calls.get(callId);
    if (open === undefined) return null;
    this.#end(open, { type: "abandoned" });
    return open.why;
  }

  send(rank: WireRank, frames: Frames): Promise<Sent> {
    return this.#input!.send([encodeIdentity(rank), ...frames]);
  }

  close(): void {
    for (const open of [...this.#calls.values()]) this.#end(open, { type: "abandoned" });
    this.#input?.close();
    this.#output?.close();
    this.#strangers.close();
  }

  async #request(open: OpenCall): Promise<void> {
    const { call } = open;
    const { clientIndex } = this.#options;
    const sent = await this.send(
      call.rank,
      encodeUtilityRequest({ clientIndex, callId: call.callId, ...call.utility }),
    );
    if (sent.ok) {
      open.delivered = true;
      open.why = null;
    } else if (this.#calls.get(call.callId) === open) {
      open.why = sent.reason === "unreachable" ? `rank ${call.rank} is not connected` : sent.text;
      open.retry = setTimeout(() => void this.#request(open), RETRY_MS);
    }
  }

  #end(open: OpenCall, outcome: CallOutcome): void {
    this.#calls.delete(open.call.callId);
    clearTimeout(open.deadline);
    clearTimeout(open.retry);
    open.settle(outcome);
  }

  #firstFrame(frames: Frames): void {
    const [identity, payload] = frames;
    if (identity === undefined || payload === undefined || frames.length !== 2) {
      return this.#strangers.count("frames", () => `${frames.length} frames on the input socket`);
    }
    const rank = decodeIdentity(identity);
    if (!rank.ok) return this.#strangers.count("identity", () => rank.refusal.text);
    if (!this.#options.expects(rank.value)) {
      return this.#strangers.count("rank", () => `rank ${rank.value} does not belong here`);
    }
    if (!this.#limit.allows(rank.value)) {
      return this.#strangers.count("flood", () => `rank ${rank.value} on the input socket`);
    }
    const frame = decodeFirstFrame(payload);
    if (frame.ok) this.#options.onFirstFrame(rank.value, frame.value.facts);
    else this.#options.onMalformed(rank.value, frame.refusal);
  }

  #outputs(frames: Frames): void {
    const message = decodeEngineOutputs(frames);
    if (!message.ok) return this.#strangers.count("message", () => message.refusal.text);
    if (message.value.type === "engine-dead") return this.#options.onEngineDead();
    const outputs = message.value;
    const rank = wireRank(outputs.engineIndex);
    if (!this.#options.expects(rank)) {
      return this.#strangers.count(
        "rank",
        () => `outputs of rank ${rank}, which does not belong here`,
      );
    }
    const { onOutputs, onStats, onWave } = this.#options;
    if (outputs.schedulerStats !== null) onStats?.(rank, outputs.schedulerStats);
    if (outputs.outputCount > 0 || outputs.finishedRequests !== null) onOutputs?.(outputs, frames);
    if (outputs.waveComplete !== null) onWave?.(rank, { waveComplete: outputs.waveComplete });
    else if (outputs.startWave !== null) onWave?.(rank, { startWave: outputs.startWave });
    if (outputs.utilityOutput === null) return;
    const event = classifyUtilityOutput(outputs.utilityOutput);
    if (!event.ok) return this.#strangers.count("message", () => event.refusal.text);
    if (event.value.type === "reply") this.#reply(rank, event.value);
    else this.#options.onNotification(rank, event.value);
  }

  #reply(rank: WireRank, reply: UtilityEvent & { type: "reply" }): void {
    const open = this.#calls.get(reply.callId);
    if (open === undefined || open.call.rank !== rank) {
      return this.#strangers.count(
        "reply",
        () => `a reply of rank ${rank} to call ${reply.callId}, which is not open`,
      );
    }
    this.#end(
      open,
      reply.failure === null
        ? { type: "replied", value: reply.result?.value ?? null }
        : { type: "failed", failure: reply.failure },
    );
  }
}

/**
 * The id of a call on the wire, made from the effect's id (`<seq>.<index>`) and the rank, so that it is the same in every
 * life of the run and different for every rank: 31 bits of sequence, 16 of index, 16 of rank.
 */
export function callIdOf(effectId: string, rank: number): string {
  const [seq = "", index = ""] = effectId.split(".");
  if (!/^\d+$/.test(seq) || !/^\d+$/.test(index) || Number(index) > 0xffff) {
    throw new TypeError(`not an effect id: ${effectId}`);
  }
  const wrapped = BigInt(seq) & 0x7fff_ffffn;
  return String((wrapped << 32n) | (BigInt(index) << 16n) | BigInt(wireRank(rank)));
}
