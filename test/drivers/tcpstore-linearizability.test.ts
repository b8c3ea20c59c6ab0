import assert from "node:assert/strict";
import { test } from "node:test";
import { openConversation } from "../../src/drivers/tcpstore/connect.ts";
import type { Conversation } from "../../src/drivers/tcpstore/conversation.ts";
import { TcpStoreServer } from "../../src/drivers/tcpstore/mod.ts";
import type { StoreReply, StoreRequest } from "../../src/protocol/tcpstore/mod.ts";
import {
  linearize,
  type RecordedOperation,
  type SequentialModel,
} from "../../src/testing/linearizability.ts";

/*
 * The server is asked by many clients at once, over sockets; what was asked and answered, and when, is a history; and
 * the history must be one that a store could give which takes one request at a time. The model below knows nothing of
 * the server's code. Keys are independent of each other, so each key's history is searched alone; a second test has
 * requests of several keys, and one history for all of them.
 */

type Operation = RecordedOperation<StoreRequest, StoreReply>;

/** A store of few keys, written down as the protocol's description has it. Values by key, queues by `queue:` and key. */
type State = Readonly<Record<string, string | undefined>>;

const store: SequentialModel<State, StoreRequest, StoreReply> = {
  initial: {},
  key: (state) => JSON.stringify(Object.entries(state).filter(([, v]) => v !== undefined).sort()),
  apply: (state, request, reply) => {
    const answered = (value: string): boolean => reply === undefined || shown(reply) === value;
    const put = (key: string, value: string | undefined): State => ({ ...state, [key]: value });
    switch (request.op) {
      case "set":
        return put(request.key, request.value);
      case "append":
        return put(request.key, (state[request.key] ?? "") + request.value);
      case "get":
        return answered(state[request.key] ?? "") ? state : undefined;
      case "add": {
        const sum = String(Number(state[request.key] ?? "0") + Number(request.delta));
        return answered(sum) ? put(request.key, sum) : undefined;
      }
      case "compareSet": {
        const now = state[request.key];
        const matches = now === request.expected || now === undefined && request.expected === "";
        if (!answered(matches ? request.desired : now ?? request.expected)) return undefined;
        return matches ? put(request.key, request.desired) : state;
      }
      case "deleteKey":
        if (!answered(state[request.key] === undefined ? "0" : "1")) return undefined;
        return put(request.key, undefined);
      case "check": {
        const all = request.keys.every((key) => state[key] !== undefined);
        return answered(all ? "0" : "1") ? state : undefined;
      }
      case "wait": // It ends only where its key is there.
        return request.keys.every((key) => state[key] !== undefined) ? state : undefined;
      case "queuePush":
        return put(
          `queue:${request.key}`,
          `${state[`queue:${request.key}`] ?? ""}${request.value};`,
        );
      case "queuePop": {
        const queue = (state[`queue:${request.key}`] ?? "").split(";").slice(0, -1);
        if (!answered(queue.length === 0 ? "0" : `${queue.length} ${queue[0]}`)) return undefined;
        const rest = queue.slice(1).map((item) => `${item};`).join("");
        return put(`queue:${request.key}`, rest === "" ? undefined : rest);
      }
      case "queueLen": {
        const length = (state[`queue:${request.key}`] ?? "").split(";").length - 1;
        return answered(String(length)) ? state : undefined;
      }
      case "multiSet":
        return request.keys.reduce((all, key, i) => ({ ...all, [key]: request.values[i]! }), state);
      case "multiGet":
        return answered(request.keys.map((key) => state[key] ?? "").join("|")) ? state : undefined;
      case "numKeys": {
        const keys = Object.entries(state).filter(([key, v]) =>
          v !== undefined && !key.startsWith("queue:")
        );
        return answered(String(keys.length)) ? state : undefined;
      }
      default:
        throw new Error(`the model has no ${request.op}`);
    }
  },
};

function shown(reply: StoreReply): string {
  switch (reply.kind) {
    case "popped":
      return reply.item === undefined ? "0" : `${reply.before} ${reply.item}`;
    case "values":
      return reply.values.join("|");
    case "keys":
      return reply.keys.join("|");
    default:
      return String(reply.value);
  }
}

/** One clock for all clients: a call's time is taken before its bytes leave, a return's after its reply was read. */
let clock = 0;
const FENCE: StoreRequest = { op: "ping", nonce: 7 };

async function ask(
  conversation: Conversation,
  request: StoreRequest,
  timeoutMs: number = 20_000,
): Promise<StoreReply | undefined> {
  const requests = [request] as const;
  return await conversation.call({ requests, operation: request.op, keys: [], timeoutMs });
}

const writes = (request: StoreRequest | undefined): boolean =>
  request === undefined || ["set", "append", "multiSet", "queuePush"].includes(request.op);

/** Has a client make calls one after another, and records them. */
async function run(
  port: number,
  calls: readonly StoreRequest[],
  history: Operation[],
  roll: (below: number) => number,
): Promise<void> {
  const conversation = await openConversation({ host: "127.0.0.1", port });
  // A write has no reply: it has happened when the reply to a later request of the same connection is there.
  // Two in a row have a fence between them, for the search grows fast with what may have happened in any order.
  let unanswered: { input: StoreRequest; called: number }[] = [];
  for (
    const input of calls.flatMap((each, i) =>
      writes(each) && writes(calls[i + 1]) ? [each, FENCE] : each
    )
  ) {
    const called = clock++;
    // Nobody may ever bring a key about: a wait lasts a little, then gives up and says nothing of the store.
    const output = await ask(conversation, input, input.op === "wait" ? roll(4) : 20_000)
      .catch((error) => {
        if (error.code !== "wait-timeout") throw error;
      });
    if (writes(input)) {
      unanswered.push({ input, called });
      continue;
    }
    const returned = clock++;
    for (const write of unanswered) history.push({ ...write, output: undefined, returned });
    unanswered = [];
    if (output !== undefined && input !== FENCE) history.push({ input, output, called, returned });
  }
  conversation.close();
}

/** A deterministic die (mulberry32), so that a failing round's number is all that is needed to repeat its requests. */
function dice(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = state + 0x6d2b79f5 >>> 0;
    let t = Math.imul(state ^ state >>> 15, 1 | state);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) % below;
  };
}

type Roll = (below: number) => number;
const WORDS = ["", "a", "b"];
const word = (roll: Roll): string => WORDS[roll(WORDS.length)]!;

/** Requests that may come to one key: it is a text, a counter or a queue. */
const ON_A_TEXT = (key: string, roll: Roll): StoreRequest => {
  switch (roll(10)) {
    case 0:
    case 1:
      return { op: "set", key, value: word(roll) };
    case 2:
      return { op: "append", key, value: "+" };
    case 3:
    case 4:
      return { op: "compareSet", key, expected: word(roll), desired: word(roll) };
    case 5:
    case 6:
      return { op: "deleteKey", key };
    case 7:
      return { op: "check", keys: [key] };
    case 8:
      return { op: "wait", keys: [key] };
    default:
      return { op: "get", key };
  }
};
const ON_A_COUNTER = (key: string, roll: Roll): StoreRequest => {
  const which = roll(6);
  if (which < 4) return { op: "add", key, delta: String(roll(3) - 1) };
  return which === 4 ? { op: "deleteKey", key } : { op: "check", keys: [key] };
};
const ON_A_QUEUE = (key: string, roll: Roll): StoreRequest => {
  const which = roll(5);
  if (which < 2) return { op: "queuePush", key, value: `${roll(1000)}` };
  return which < 4 ? { op: "queuePop", key } : { op: "queueLen", key };
};

async function rounds(
  port: number,
  howMany: number,
  clients: number,
  each: number,
  request: (client: number, roll: Roll) => StoreRequest,
): Promise<Operation[]> {
  const history: Operation[] = [];
  for (let round = 0; round < howMany; round++) {
    await Promise.all(Array.from({ length: clients }, (_, client) => {
      const roll = dice(round * 1000 + client);
      const calls = Array.from({ length: each }, () => request(client, roll));
      return run(port, calls, history, roll);
    }));
  }
  return history;
}

const keyOf = (request: StoreRequest): string =>
  "key" in request ? request.key : "keys" in request ? request.keys[0]! : "";

function explained(history: readonly Operation[], what: string): void {
  const verdict = linearize(history, store);
  if (verdict.linearizable) return;
  const tail = verdict.longest.slice(-5).map((op) => JSON.stringify(op));
  assert.fail(
    `${what}: nothing explains this; the last that could be placed:\n${
      tail.join("\n")
    }\nthen none of:\n${verdict.stuck.map((op) => JSON.stringify(op)).join("\n")}`,
  );
}

/** How many pairs of operations of a history overlap: a history without any proves little. */
function overlaps(history: readonly Operation[]): number {
  let count = 0;
  for (const a of history) {
    for (const b of history) if (a.called < b.called && b.called < a.returned) count++;
  }
  return count;
}

test("every key's history is one that a store could give which takes one request at a time", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const kinds = [ON_A_TEXT, ON_A_COUNTER, ON_A_QUEUE];
  // 5 rounds of 6 clients with 100 requests each, over six keys.
  const history = await rounds(server.port, 5, 6, 100, (_, roll) => {
    const which = roll(6);
    return kinds[which % 3]!(`/key/${which}`, roll);
  });
  assert(history.length > 2_700, `${history.length} operations; waits that gave up are none`);
  const byKey = new Map<string, Operation[]>();
  for (const op of history) byKey.set(keyOf(op.input), [...byKey.get(keyOf(op.input)) ?? [], op]);
  assert.equal(byKey.size, 6);
  for (const [key, ops] of byKey) {
    assert(overlaps(ops) > ops.length / 2, `${key}: hardly anything overlapped`);
    explained(ops, key);
  }
});

test("requests of several keys take effect as a whole", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const keys = ["/a", "/b", "/c"];
  for (let round = 0; round < 10; round++) {
    const start = await openConversation({ host: "127.0.0.1", port: server.port });
    for (const key of keys) await ask(start, { op: "deleteKey", key });
    start.close();
    const history = await rounds(server.port, 1, 5, 12, (client, roll) => {
      switch (roll(5)) {
        case 0:
        case 1:
          return { op: "multiSet", keys, values: keys.map(() => `${client}`) };
        case 2:
          return { op: "deleteKey", key: keys[roll(3)]! };
        case 3:
          return { op: "check", keys };
        default:
          return { op: "multiGet", keys };
      }
    });
    explained(history, `round ${round}`);
  }
});

test("a history in which one answer was altered is not explained", async (t) => {
  const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const history = await rounds(server.port, 1, 6, 40, (_, roll) => ON_A_COUNTER("/n", roll));
  explained(history, "as recorded");
  const adds = history.filter((op) => op.input.op === "add");
  for (const altered of [adds[0]!, adds[adds.length >> 1]!, adds.at(-1)!]) {
    const wrong = { ...altered, output: { kind: "integer", value: "1000" } as const };
    const verdict = linearize(history.map((op) => op === altered ? wrong : op), store);
    assert.equal(verdict.linearizable, false);
  }
});

test("a lost update and a stale read are found", () => {
  const add = (called: number, returned: number, value: string): Operation => ({
    input: { op: "add", key: "k", delta: "1" },
    output: { kind: "integer", value },
    called,
    returned,
  });
  assert.equal(linearize([add(0, 2, "1"), add(1, 3, "1")], store).linearizable, false);
  assert.equal(linearize([add(0, 2, "1"), add(1, 3, "2")], store).linearizable, true);
  assert.equal(linearize([add(0, 1, "2"), add(2, 3, "1")], store).linearizable, false);
});
