import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Addressed,
  type ConnectionId,
  disconnect,
  EMPTY_STORE,
  serve,
  stateOf,
  StoreTables,
  tablesOf,
} from "../../src/peers/tcpstore.ts";
import { encodeReply, hexOf, type StoreRequest } from "../../src/protocol/tcpstore/mod.ts";

/** A store and a log of who was told what: `1:00` is the byte 00 for connection 1, `1:closed` a refusal. */
class Story {
  state = EMPTY_STORE;

  tell(from: ConnectionId, request: StoreRequest): string {
    const before = JSON.stringify(this.state);
    const [after, answers] = serve(this.state, from, request);
    assert.equal(JSON.stringify(this.state), before, "the store given was changed");
    this.state = after;
    return answers.map(shown).join(" ");
  }

  set = (key: string, value = "v", from: ConnectionId = 0): string =>
    this.tell(from, { op: "set", key, value });
  wait = (from: ConnectionId, ...keys: string[]): string => this.tell(from, { op: "wait", keys });
  get = (key: string): string => this.tell(0, { op: "get", key });
  add = (key: string, delta: string): string => this.tell(0, { op: "add", key, delta });
}

const shown = ({ to, answer }: Addressed): string =>
  `${to}:${answer.kind === "refused" ? "closed" : hexOf(encodeReply(answer))}`;
const i64 = (value: bigint): string => {
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigInt64(0, value, true);
  return [...new Uint8Array(bytes.buffer)].map((b) => b.toString(16).padStart(2, "0")).join("");
};
const bytes = (text: string): string => i64(BigInt(text.length)) + hexOf(text);

test("SET has no answer and overwrites; GET of an absent key is empty", () => {
  const s = new Story();
  assert.equal(s.get("k"), `0:${bytes("")}`);
  assert.equal(s.set("k", "one"), "");
  assert.equal(s.set("k", "two"), "");
  assert.equal(s.get("k"), `0:${bytes("two")}`);
});

test("COMPARE_SET follows its table", () => {
  const cas = (s: Story, expected: string, desired: string): string =>
    s.tell(0, { op: "compareSet", key: "k", expected, desired });
  const absent = new Story();
  assert.equal(
    cas(absent, "other", "new"),
    `0:${bytes("other")}`,
    "absent, expected something: lies",
  );
  assert.deepEqual(absent.state.keys, {});
  assert.equal(cas(absent, "", "new"), `0:${bytes("new")}`, "absent, expected empty: stored");
  assert.equal(cas(absent, "old", "newer"), `0:${bytes("new")}`, "present, other: unchanged");
  assert.equal(cas(absent, "", "newer"), `0:${bytes("new")}`, "present, expected empty: unchanged");
  assert.equal(cas(absent, "new", "newer"), `0:${bytes("newer")}`, "present, equal: stored");
  const empty = new Story();
  empty.set("k", "");
  assert.equal(cas(empty, "x", "new"), `0:${bytes("")}`);
  assert.equal(cas(empty, "", "new"), `0:${bytes("new")}`, "both empty: stored");
});

test("COMPARE_SET wakes waiters exactly when the key exists afterwards", () => {
  const s = new Story();
  s.wait(1, "k");
  s.wait(2, "k");
  assert.equal(
    s.tell(0, { op: "compareSet", key: "k", expected: "x", desired: "y" }),
    `0:${bytes("x")}`,
  );
  assert.equal(
    s.tell(0, { op: "compareSet", key: "k", expected: "", desired: "y" }),
    `0:${bytes("y")} 1:00 2:00`,
  );
});

test("ADD reads a stored value as the original's number parser does, and writes it canonically", () => {
  const after = (value: string, delta = "1"): string => {
    const s = new Story();
    s.set("k", value);
    const told = s.add("k", delta);
    return told === "0:closed" ? `closed, ${s.state.keys["k"]}` : s.state.keys["k"]!;
  };
  assert.deepEqual(
    ["  42xyz", "+5", "010", "0x10", "1.9", "5\0junk", "-7", "\n\t7", " 7", "-0"].map((v) =>
      after(v)
    ),
    ["43", "6", "11", "1", "2", "6", "-6", "8", "8", "1"],
  );
  assert.deepEqual(["", "abc", "\u00a07", "99999999999999999999", "- 1"].map((v) => after(v)), [
    "closed, ",
    "closed, abc",
    "closed, \u00a07",
    "closed, 99999999999999999999",
    "closed, - 1",
  ]);
  assert.equal(after("9223372036854775807"), "-9223372036854775808", "the sum wraps");
  assert.equal(after("-9223372036854775808", "-1"), "9223372036854775807");
  assert.equal(after("9223372036854775807", "2"), "-9223372036854775807");
  assert.equal(after("9223372036854775808"), "closed, 9223372036854775808");
  assert.equal(after("+9223372036854775807", "0"), "9223372036854775807");
});

test("ADD of nothing creates the key as 0, and answers the sum", () => {
  const s = new Story();
  assert.equal(s.add("k", "0"), `0:${i64(0n)}`);
  assert.equal(s.state.keys["k"], "0");
  assert.equal(s.add("k", "-58"), `0:${i64(-58n)}`);
  assert.equal(s.get("k"), `0:${bytes("-58")}`);
});

test("CHECK sees keys and queues that are not empty; of no key it is true", () => {
  const s = new Story();
  const check = (...keys: string[]): string => s.tell(0, { op: "check", keys });
  s.set("k");
  s.tell(0, { op: "queuePush", key: "q", value: "item" });
  assert.equal(check(), "0:00");
  assert.equal(check("k", "q", "k"), "0:00");
  assert.equal(check("k", "missing"), "0:01");
  s.tell(0, { op: "queuePop", key: "q" });
  assert.equal(check("q"), "0:01");
});

test("DELETE_KEY, NUM_KEYS and LIST_KEYS know keys only, not queues of the same name", () => {
  const s = new Story();
  s.tell(0, { op: "queuePush", key: "k", value: "item" });
  assert.equal(s.tell(0, { op: "deleteKey", key: "k" }), `0:${i64(0n)}`);
  assert.equal(s.tell(0, { op: "numKeys" }), `0:${i64(0n)}`);
  s.set("k");
  assert.equal(s.tell(0, { op: "numKeys" }), `0:${i64(1n)}`);
  assert.equal(s.tell(0, { op: "listKeys" }), `0:${i64(1n)}${bytes("k")}`);
  assert.equal(s.tell(0, { op: "deleteKey", key: "k" }), `0:${i64(1n)}`);
  assert.equal(s.tell(0, { op: "queueLen", key: "k" }), `0:${i64(1n)}`);
});

test("APPEND creates and extends, MULTI_SET sets, MULTI_GET answers in the order asked, and each wakes", () => {
  const s = new Story();
  s.wait(1, "a", "b");
  s.wait(2, "b");
  assert.equal(s.tell(0, { op: "append", key: "a", value: "x" }), "");
  assert.equal(s.tell(0, { op: "append", key: "a", value: "y" }), "");
  assert.equal(s.tell(0, { op: "multiSet", keys: ["c", "b"], values: ["1", "2"] }), "1:00 2:00");
  assert.equal(
    s.tell(0, { op: "multiGet", keys: ["b", "none", "a", "b"] }),
    `0:${bytes("2")}${bytes("")}${bytes("xy")}${bytes("2")}`,
  );
  assert.equal(s.tell(0, { op: "multiGet", keys: [] }), "0:");
});

test("queues are first in, first out, and a push wakes one waiter, the longest waiting", () => {
  const s = new Story();
  const push = (value: string): string => s.tell(0, { op: "queuePush", key: "q", value });
  const pop = (): string => s.tell(0, { op: "queuePop", key: "q" });
  assert.equal(pop(), `0:${i64(0n)}`);
  for (const waiter of [3, 1, 2]) assert.equal(s.wait(waiter, "q"), "");
  assert.equal(push("a"), "3:00");
  assert.equal(push("b"), "1:00");
  assert.equal(pop(), `0:${i64(2n)}${bytes("a")}`);
  assert.equal(pop(), `0:${i64(1n)}${bytes("b")}`);
  assert.equal(pop(), `0:${i64(0n)}`);
  assert.deepEqual(s.state.queues, {});
});

test("WAIT answers at once, or when the last missing key comes; of no key, at once", () => {
  const s = new Story();
  s.set("k");
  assert.equal(s.wait(1), "1:00");
  assert.equal(s.wait(1, "k", "k"), "1:00");
  assert.equal(s.wait(1, "k", "a", "b", "a"), "");
  assert.equal(s.set("a"), "");
  assert.equal(s.add("b", "1"), `0:${i64(1n)} 1:00`, "one 00, after the answer to who asked");
  assert.deepEqual(s.state.waiters, {});
});

test("a wait is a latch per key: a key that came counts also when it is deleted again", () => {
  const s = new Story();
  s.wait(1, "a", "b");
  s.set("a");
  s.tell(0, { op: "deleteKey", key: "a" });
  assert.equal(s.set("b"), "1:00");
});

test("a wait for a filled queue and a missing key wakes when the key comes", () => {
  const s = new Story();
  s.tell(0, { op: "queuePush", key: "q", value: "item" });
  s.wait(1, "q", "k");
  assert.equal(s.set("k"), "1:00");
});

test("CANCEL_WAIT is always answered; after a wake that was on its way there are both bytes", () => {
  const s = new Story();
  const cancel = (): string => s.tell(1, { op: "cancelWait" });
  assert.equal(cancel(), "1:01");
  s.wait(1, "k");
  assert.equal(cancel(), "1:01");
  assert.equal(s.set("k"), "", "nobody waits any more");
  s.wait(1, "j");
  assert.equal(s.set("j") + " " + cancel(), "1:00 1:01");
});

test("other requests of a waiting connection are served, and a second wait replaces the first", () => {
  const s = new Story();
  s.wait(1, "a");
  assert.equal(s.tell(1, { op: "ping", nonce: 0x04030201 }), "1:01020304");
  s.wait(1, "b");
  assert.equal(s.set("a"), "");
  assert.equal(s.set("b", "v", 1), "1:00", "its own SET wakes it");
});

test("who disconnects waits no longer, and what it stored stays", () => {
  const s = new Story();
  s.set("mine", "v", 1);
  s.wait(1, "k");
  s.wait(2, "k");
  s.state = disconnect(s.state, 1);
  assert.deepEqual(s.state.waiters, { k: [2] });
  assert.equal(s.set("k"), "2:00");
  assert.equal(s.state.keys["mine"], "v");
});

test("BARRIER opens for everybody when the last one comes, and stays open", () => {
  const s = new Story();
  const arrive = (who: number, worldSize = "3"): string =>
    s.tell(who, { op: "barrier", key: "b", worldSize });
  assert.equal(arrive(1), "");
  assert.equal(arrive(2), "");
  assert.equal(arrive(3), "3:00 1:00 2:00");
  assert.equal(arrive(4), "4:00", "used again it opens at once");
  assert.equal(s.state.keys["b"], "4");
});

test("BARRIER of one, of none and of less is open; who gave up stays counted; a value that is no number closes", () => {
  const barrier = (s: Story, who: number, key: string, worldSize: string): string =>
    s.tell(who, { op: "barrier", key, worldSize });
  const s = new Story();
  for (const size of ["1", "0", "-1"]) assert.equal(barrier(s, 1, size, size), "1:00");
  barrier(s, 1, "b", "2");
  assert.equal(s.tell(1, { op: "cancelWait" }), "1:01");
  assert.equal(barrier(s, 2, "b", "2"), "2:00");
  s.set("word", "zz");
  assert.equal(barrier(s, 1, "word", "2"), "1:closed");
  assert.equal(s.state.keys["word"], "zz");
  barrier(s, 1, "c", "9");
  assert.equal(s.set("c", "0"), "1:00", "any SET of the key releases");
});

test("a refusal says which key holds what", () => {
  const tables = new StoreTables([["/k", "abc"]]);
  const answers: unknown[] = [];
  tables.serve(7, { op: "add", key: "/k", delta: "1" }, (to, answer) => answers.push([to, answer]));
  assert.deepEqual(answers, [[7, {
    kind: "refused",
    code: "not-an-integer",
    message: 'key "/k" holds "abc", which is not a 64-bit integer',
  }]]);
});

test("keys that are awkward as property names are keys like others", () => {
  const s = new Story();
  for (const key of ["__proto__", "constructor", "1", "", "\0"]) s.set(key, `<${key}>`);
  for (const key of ["__proto__", "constructor", "1", "", "\0"]) {
    assert.equal(s.get(key), `0:${bytes(`<${key}>`)}`);
  }
  assert.deepEqual(stateOf(tablesOf(s.state)), s.state);
});

/** Requests over few keys, so that they meet. */
const key = fc.constantFrom("a", "b", "c");
const value = fc.constantFrom("", "1", "x", "longer");
const keys = fc.array(key, { maxLength: 3 });
const request: fc.Arbitrary<StoreRequest> = fc.oneof(
  fc.record({ op: fc.constantFrom("set", "append", "queuePush"), key, value }),
  fc.record({ op: fc.constant("compareSet"), key, expected: value, desired: value }),
  fc.record({ op: fc.constantFrom("get", "deleteKey", "queuePop", "queueLen"), key }),
  fc.record({ op: fc.constant("add"), key, delta: fc.constantFrom("0", "1", "-1") }),
  fc.record({ op: fc.constant("barrier"), key, worldSize: fc.constantFrom("1", "2") }),
  fc.record({ op: fc.constantFrom("check", "wait", "multiGet"), keys }),
  keys.map((names) => ({ op: "multiSet", keys: names, values: names.map((n) => n + n) })),
  fc.record({ op: fc.constantFrom("numKeys", "listKeys", "cancelWait") }),
) as fc.Arbitrary<StoreRequest>;
const steps = fc.array(fc.tuple(fc.nat({ max: 3 }), fc.option(request, { freq: 12 })), {
  maxLength: 40,
});

test("running tables and the pure function agree, answer by answer, and on what is left", () => {
  fc.assert(
    fc.property(steps, (story) => {
      const tables = new StoreTables();
      let state = EMPTY_STORE;
      for (const [from, what] of story) {
        if (what === null) {
          tables.disconnect(from);
          state = disconnect(state, from);
          continue;
        }
        const live: Addressed[] = [];
        const before = tables.bytes;
        const growth = tables.growth(what);
        tables.serve(from, what, (to, answer) => live.push({ to, answer }));
        assert(tables.bytes - before <= growth, "grew by more than was foretold");
        const [next, pure] = serve(state, from, what);
        // The order in which LIST_KEYS names keys is unspecified.
        if (what.op !== "listKeys") assert.deepEqual(pure, live);
        state = next;
        assert.deepEqual(stateOf(tables), state);
        assert.equal(tablesOf(state).bytes, tables.bytes);
        assert.deepEqual(JSON.parse(JSON.stringify(state)), state, "state is JSON");
      }
    }),
    { numRuns: 3_000, seed: 5 },
  );
});

test("a store that was emptied takes no memory", () => {
  const tables = new StoreTables();
  const nobody = (): void => {};
  tables.serve(1, { op: "set", key: "k", value: "value" }, nobody);
  tables.serve(1, { op: "append", key: "k", value: "more" }, nobody);
  tables.serve(1, { op: "queuePush", key: "q", value: "item" }, nobody);
  tables.serve(1, { op: "wait", keys: ["never"] }, nobody);
  assert.equal(tables.bytes, (64 + 1 + 9) + (64 + 1) + (64 + 4) + (256 + 5));
  tables.serve(1, { op: "deleteKey", key: "k" }, nobody);
  tables.serve(1, { op: "queuePop", key: "q" }, nobody);
  tables.disconnect(1);
  assert.equal(tables.bytes, 0);
});

test("a queue of 100,000 items is taken apart in order", () => {
  const tables = new StoreTables();
  for (let i = 0; i < 100_000; i++) {
    tables.serve(1, { op: "queuePush", key: "q", value: String(i) }, () => {});
  }
  for (let i = 0; i < 100_000; i++) {
    tables.serve(1, { op: "queuePop", key: "q" }, (_, answer) => {
      if (answer.kind !== "popped" || answer.item !== String(i)) assert.fail(`item ${i}`);
    });
  }
  assert.equal(tables.bytes, 0);
});
