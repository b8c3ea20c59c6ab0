import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import {
  type Action,
  conform,
  conformanceText,
  type Observation,
  Runner,
} from "../../src/checker/mod.ts";
import type { Input } from "../../src/kernel/mod.ts";
import { JournalReader } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { conformFrames, isRecording } from "../../models/frames.ts";
import { conformJournal } from "../../models/conformance.ts";
import { startup } from "../../models/startup.ts";
import { strayFrame } from "../../models/upstream/startup.ts";
import { runs } from "../golden/recording.ts";
import { configuration } from "../data/startup-run.ts";

/** A run as a journal records it: the inputs of our own instances, in order. */
const inputs = (events: readonly (readonly [string, Input["event"]])[]): Input[] =>
  [["@system", configuration] as const, ...events].map(([to, event], i) => ({
    seq: i + 1,
    at: i,
    to,
    event: event as Input["event"],
  }));

const formed = [
  ["startup", { type: "bound", socket: "bus0", endpoints: { input: "i", output: "o" } }],
  ["startup", { type: "bound", socket: "handshake", endpoints: { bind: "tcp://h:29550" } }],
  ["rank/1/engine", { type: "hello", local: false, headless: true }],
  ["startup", { type: "strangers", kind: "frames", count: 3, sample: "00" }],
  ["rank/0/engine", { type: "hello", local: false, headless: true }],
  ["rank/1/engine", { type: "ready", local: false, headless: true, blocks: 512 }],
  ["rank/0/engine", { type: "ready", local: false, headless: true, blocks: 512 }],
] as const;

test("a recorded start-up is a run of the model, with the engines' own steps searched for", () => {
  const result = conformJournal(inputs(formed));
  assert.equal(result.outcome, "conforms", conformanceText(result));
  assert.equal(result.explained, 6);
  assert.deepEqual(result.leftOut, { "strangers to startup": 1 });
});

test("a crash and a restart between two records are found although nobody recorded the crash", () => {
  const crashed = [
    ...formed.slice(0, 5),
    ["@system", { type: "resumed", downMs: 90 }] as const,
    ...formed.slice(5),
  ];
  const result = conformJournal(inputs(crashed));
  assert.equal(result.outcome, "conforms", conformanceText(result));
  assert.ok(result.run.steps.some((s) => s.action.kind === "crash"));
});

test("the first record that no run explains is named, with the nearest that would have been", () => {
  const twisted = formed.map(([to, event], i) =>
    i === 4 ? [to, { ...event, headless: false }] as const : [to, event] as const
  );
  const result = conformJournal(inputs(twisted));
  assert.equal(result.outcome, "differs");
  assert.equal(result.explained, 3);
  const { observation, nearest } = result.unexplained!;
  assert.equal(observation.seq, 6);
  assert.match(nearest[0]!.label, /^rank\/0\/engine receives hello/);
  assert.deepEqual(nearest[0]!.differences, ["headless could be true; it was false"]);
});

test("READY before HELLO is no run of the model", () => {
  const result = conformJournal(inputs([formed[0]!, formed[1]!, formed[5]!]));
  assert.equal(result.outcome, "differs");
  assert.equal(result.unexplained!.observation.to, "rank/1/engine");
});

test("frames of an original cluster are held against the original's rules", () => {
  const frames = (last: string): Observation[] => [
    { to: "front-end", event: { type: "hello", rank: "engine/0" } },
    { to: "engine/0", event: { type: "init" } },
    { to: "front-end", event: { type: last, rank: "engine/0" } },
  ];
  // What an engine decides by itself is not on the wire.
  const options = { hidden: (action: Action) => action.kind === "event" };
  assert.equal(conform(strayFrame.model, frames("ready"), options).outcome, "conforms");
  const twice = conform(
    strayFrame.model,
    [...frames("ready"), ...frames("ready").slice(2)],
    options,
  );
  assert.equal(twice.outcome, "differs");
  assert.equal(twice.explained, 3);
});

const recordings = ["0.12.0", "0.32.0"].flatMap((version) =>
  readdirSync(`test/golden/vllm-${version}`)
    .filter((name) => !name.endsWith(".run.jsonl"))
    .map((name) => `test/golden/vllm-${version}/${name}`)
);

for (const path of recordings) {
  test(`${path}: what real engines said and were told is a run of the original's handshake`, () => {
    const text = readFileSync(path, "utf8");
    assert.equal(isRecording(text), true);
    const result = conformFrames(text);
    assert.equal(result.outcome, "conforms", conformanceText(result));
    assert.deepEqual([result.observations, result.run.steps.length], [6, 10]);
    assert.ok(result.leftOut["messages on the socket input"]! > 0);
  });
}

test("a recording that is no run of the original's handshake is told apart by its line", () => {
  const lines = readFileSync("test/golden/vllm-0.32.0/moe.jsonl", "utf8").trimEnd().split("\n");
  const where = (change: (lines: string[]) => string[]) => {
    const { outcome, unexplained } = conformFrames(change([...lines]).join("\n"));
    return [outcome, unexplained?.observation.seq, unexplained?.observation.event.type];
  };
  assert.deepEqual(where((l) => l.filter((_, i) => i !== 1)), ["differs", 2, "init"]);
  assert.deepEqual(where((l) => [...l.slice(0, 3), l[1]!, ...l.slice(3)]), ["differs", 4, "hello"]);
  assert.deepEqual(
    where((l) => l.map((line, i) => i === 1 ? line.replace("83a6", "c1a6") : line)),
    ["differs", 2, "stray"],
  );
});

test("what may happen unseen may be seen, too", () => {
  const seen: Observation[] = [
    { to: "engine/0", event: { type: "start" } },
    { to: "front-end", event: { type: "hello", rank: "engine/0" } },
  ];
  const hidden = (action: Action) => action.kind === "event";
  assert.equal(conform(strayFrame.model, seen, { hidden }).outcome, "conforms");
  assert.equal(conform(strayFrame.model, seen.slice(1), { hidden }).outcome, "conforms");
});

test("every random run of the model conforms to it", () => {
  const model = startup({ engines: 2 });
  const runner = new Runner(model);
  for (let seed = 0; seed < 10; seed++) {
    let n = seed;
    const run = runner.run((choices) => {
      n = (n * 1103515245 + 12345) % 2147483648;
      return choices.length === 0 ? undefined : n % choices.length;
    });
    const observations = run.actions.filter((a) =>
      a.kind !== "crash" && a.kind !== "restart" && a.event !== undefined &&
      a.to!.startsWith("rank/")
    ).map((a) => ({ to: a.to!, event: a.event! }));
    assert.equal(conform(model, observations).outcome, "conforms");
  }
});

test("runs of ours with real vLLM engines of both releases are runs that the model allows", () => {
  for (const { name, inputs } of runs()) {
    const result = conformJournal(inputs as Input[]);
    assert.equal(result.outcome, "conforms", `${name}: ${conformanceText(result)}`);
    assert.equal(result.explained, 14);
  }
});

test("the golden journal of a cluster is a run that the model allows, sockets that are bound again included", () => {
  const records = new JournalReader(new FileStore("test/golden/cluster-0.1").segments()).records();
  const result = conformJournal([...records].map((r) => r.record));
  assert.equal(result.outcome, "conforms", conformanceText(result));
  assert.equal(result.explained, 15);
  assert.equal(result.leftOut["bound to startup"], 1);
});

test("a cluster that scales has its keeper before its sockets, and its run is one that the model allows", () => {
  const records = new JournalReader(new FileStore("test/golden/cluster-0.1").segments()).records();
  const [configured, ...rest] = [...records].map((r) => r.record as Input);
  const scaling = { ...configured!, event: { ...configured!.event, scaling: { maxSize: 4 } } };
  const placed = rest.filter((r) => r.event.type === "keeperPlaced");
  const others = rest.filter((r) => r.event.type !== "keeperPlaced");
  assert.equal(placed.length, 1);
  const result = conformJournal([scaling, ...placed, ...others]);
  assert.equal(result.outcome, "conforms", conformanceText(result));
  assert.equal(result.explained, 14);
  assert.equal(result.leftOut["keeperPlaced to launcher"], 1);
  assert.match(conformanceText(result), / 14 of 14 observations explained, .* is possible then$/);

  // The same order is no run of a cluster that does not scale.
  assert.equal(conformJournal([configured!, ...placed, ...others]).outcome, "differs");
});
