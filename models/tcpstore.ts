/**
 * Ranks that decide and meet through a TCPStore: the store is the very one that the server runs.
 *
 * Each rank proposes an outcome with a compare_set to one write-once key, says that it knows the winner, waits until all
 * ranks have said so, and goes on. Requests and replies travel in order on a connection each; a rank may crash at any
 * moment, and its connection with it.
 */
import {
  defineModel,
  type Model,
  type Operation,
  type Reducer,
  send,
  type World,
} from "../src/checker/mod.ts";
import { effect, type Json, type KernelEvent } from "../src/kernel/mod.ts";
import {
  type Addressed,
  disconnect,
  EMPTY_STORE,
  serve,
  type StoreAnswer,
  type StoreState,
} from "../src/peers/tcpstore.ts";
import type { StoreRequest } from "../src/protocol/tcpstore/mod.ts";

const DECISION = "/decision";
const knows = (rank: number): string => `/knows/${rank}`;

export interface StoreModelOptions {
  readonly ranks: number;
  /** Crashes of ranks in a run, without return. */
  readonly crashes: number;
  /** Another store, for tests that the properties can fail. */
  readonly serve?: typeof serve;
}

type StoreEvent =
  | { type: "asked"; from: string; request: StoreRequest }
  | { type: "disconnected"; from: string };

const storeWith = (serves: typeof serve): Reducer => ({
  id: "tcpstore",
  initial: () => ({ state: EMPTY_STORE as unknown as Json }),
  step: (given, happened) => {
    const state = given as unknown as StoreState;
    const event = happened as unknown as StoreEvent;
    if (event.type === "disconnected") {
      return { state: disconnect(state, event.from) as unknown as Json };
    }
    const [next, answers] = serves(state, event.from, event.request);
    return {
      state: next as unknown as Json,
      outputs: answers.map(({ to, answer }: Addressed) =>
        effect({ type: "reply", to: String(to), answer: answer as unknown as Json })
      ),
    };
  },
});

interface RankInput {
  readonly rank: number;
  readonly ranks: number;
}
/** `proposed`: waits for the decision. `waiting`: for the others. `through`: has gone on. */
interface RankState extends RankInput {
  readonly at: "proposed" | "waiting" | "through";
  readonly decision: string | null;
}

const ask = (request: StoreRequest) => effect({ type: "ask", request: request as unknown as Json });

const rank: Reducer = {
  id: "store-client",
  initial: (input) => {
    const { rank, ranks } = input as unknown as RankInput;
    const state: RankState = { rank, ranks, at: "proposed", decision: null };
    const desired = rank % 2 === 0 ? "commit" : "abort";
    return {
      state: state as unknown as Json,
      outputs: [ask({ op: "compareSet", key: DECISION, expected: "", desired })],
    };
  },
  step: (given, event) => {
    const state = given as unknown as RankState;
    const { answer } = event as unknown as { answer: StoreAnswer };
    if (state.at === "proposed" && answer.kind === "value") {
      const keys = Array.from({ length: state.ranks }, (_, r) => knows(r));
      return {
        state: { ...state, at: "waiting", decision: answer.value } as unknown as Json,
        // A SET has no reply, so both leave at once, in this order.
        outputs: [
          ask({ op: "set", key: knows(state.rank), value: answer.value }),
          ask({ op: "wait", keys }),
        ],
      };
    }
    if (state.at === "waiting" && answer.kind === "flag") {
      return { state: { ...state, at: "through" } as unknown as Json };
    }
    return undefined;
  },
};

/** The model: so many ranks, and one store. */
export function tcpStore(options: StoreModelOptions): Model {
  const { ranks, crashes } = options;
  const names = Array.from({ length: ranks }, (_, r) => `rank/${r}`);
  const rankAt = (w: World, name: string) => w.at(name)?.value as RankState | undefined;
  const storeAt = (w: World) => w.at("store")!.value as StoreState;
  const decisions = (w: World) =>
    new Set(names.map((name) => rankAt(w, name)?.decision).filter((d) => typeof d === "string"));
  const all = (w: World, at: RankState["at"]) => names.every((name) => rankAt(w, name)?.at === at);
  return defineModel({
    name: `${ranks} ranks that meet through a TCPStore`,
    processes: {
      store: { runs: storeWith(options.serve ?? serve) },
      ...Object.fromEntries(
        names.map((name, r) => [name, { runs: rank, input: { rank: r, ranks } }]),
      ),
    },
    channels: { tcp: "fifo" },
    effects: {
      ask: ({ request }, _, from): Operation[] => [
        send("tcp", "store", { type: "asked", from, request } as KernelEvent),
      ],
      reply: ({ to, answer }): Operation[] => [
        send("tcp", to, { type: "replied", answer } as KernelEvent),
      ],
    },
    faults: {
      crashes: [{
        nodes: names,
        budget: crashes,
        restart: "never",
        notices: (from) => [
          { do: "input", to: "store", event: { type: "disconnected", from } as KernelEvent },
        ],
      }],
    },
    properties: {
      always: {
        "ranks that know a decision know the same": (w) => decisions(w).size <= 1,
        "the decision is in the store for as long as anybody knows it": (w) =>
          [...decisions(w)].every((each) => storeAt(w).keys[DECISION] === each),
        "nobody goes on before all ranks know": (w) =>
          !names.some((name) => rankAt(w, name)?.at === "through") ||
          names.every((_, r) => storeAt(w).keys[knows(r)] !== undefined),
        "nobody waits for a key that is there": (w) => {
          const { keys, waiters } = storeAt(w);
          return Object.keys(waiters).every((key) => keys[key] === undefined);
        },
        "who is gone waits no longer": (w) =>
          Object.values(storeAt(w).waiters).flat().every((each) => !w.down(String(each))),
      },
      sometimes: {
        "commit wins": (w) => decisions(w).has("commit"),
        "abort wins": (w) => decisions(w).has("abort"),
        "all go on": (w) => all(w, "through"),
      },
      ...(crashes === 0 ? { eventually: { "all go on": (w: World) => all(w, "through") } } : {}),
      rest: (w) => crashes > 0 || all(w, "through"),
    },
  });
}
