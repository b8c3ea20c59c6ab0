/**
 * Mixed clusters: ranks of ours among ranks that behave as the original's, over torch's TCPStore and msgspec. Ours as rank 0, and the reverse; up,
 * down, and each failure. Agreement is promised where all old ranks are ours; here the same bytes are spoken, and ours say what they know.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { OwnStores } from "../../src/drivers/scaling-store.ts";
import type { ScalingOutput } from "../../src/machines/scaling.ts";
import { MemoryEngines } from "../../src/testing/memory-engines.ts";
import { ScalingGroup } from "../../src/testing/scaling-group.ts";
import { missing, type Peer, peer } from "./python.ts";

const options = { skip: missing, timeout: 120_000 };
const LIMIT_S = 8;
const LIMITS = {
  prepareMs: 12_000,
  voteMs: 8_000,
  outcomeMs: 8_000,
  utilityMs: 5_000,
  retryMs: 50,
};

interface Mixed {
  /** Ranks of ours. */
  readonly ours: readonly number[];
  readonly from: number;
  readonly to: number;
  /** What goes wrong at which original rank. */
  readonly faults?: Readonly<Record<number, string>>;
  /** Our engines hear, while ours prepares, of an operation that is long over. */
  readonly lateWord?: boolean;
  /** Ask again once everybody has ended, with every engine of ours started anew. */
  readonly again?: boolean;
}

interface Ending {
  /** How ours ended; `waiting` while it is in doubt. */
  readonly ours: Readonly<Record<number, string>>;
  readonly originals: Readonly<Record<number, string>>;
  readonly texts: readonly string[];
  /** What came of asking again. */
  readonly again?: Omit<Ending, "again">;
}

async function scale(t: TestContext, mixed: Mixed): Promise<Ending> {
  const { ours, from, to, faults = {}, lateWord = false, again = false } = mixed;
  const stores = new OwnStores("127.0.0.1");
  const theirs = new Map<number, Peer>();
  const others = Array.from({ length: from }, (_, r) => r).filter((r) => !ours.includes(r));
  const start = (rank: number, port: number | string) => {
    const fault = faults[rank];
    const arguments_ = [rank, from, to, port, LIMIT_S, ...(fault === undefined ? [] : [fault])];
    theirs.set(rank, peer("original_rank.py", ...arguments_));
  };
  t.after(async () => {
    await Promise.all([...theirs.values()].map((p) => p.stop()));
    await stores.close();
  });
  let controlPort: number;
  if (ours.includes(0)) controlPort = await stores.serve("control");
  else {
    start(0, 0);
    controlPort = Number(await theirs.get(0)!.firstLine);
  }
  for (const rank of others) if (rank !== 0) start(rank, controlPort);
  await Promise.all([...theirs.values()].map((p) => p.firstLine));

  const engines = new MemoryEngines(
    from,
    to > from && !ours.includes(0)
      // New engines belong to whoever leads.
      ? [...others, ...Array.from({ length: to - from }, (_, i) => from + i)]
      : others,
  );
  const group = await ScalingGroup.start({
    size: from,
    ranks: ours,
    limits: LIMITS,
    world: { engines, stores, controlPort },
  });
  t.after(async () => {
    await group.close();
    await engines.close();
  });
  const told = async (operation: string): Promise<Ending> => {
    const ended = new Map<number, ScalingOutput>();
    const stop = group.host.subscribe(({ transitions }) => {
      for (const { event, chart, instance } of transitions) {
        if (chart !== "topology" || event.type !== "ended") continue;
        ended.set(Number(instance.split("/")[1]), event["output"] as ScalingOutput);
      }
    });
    t.after(stop);
    const originals: Record<number, string> = {};
    const others = [...theirs].map(async ([rank, p]) => {
      originals[rank] = await outcomeOf(p);
    });
    for (const p of theirs.values()) p.process.stdin!.write("go\n");
    for (const rank of ours) {
      await group.host.submit(`rank/${rank}/topology`, {
        type: "prepare",
        operation,
        target: to,
        remains: rank < to,
        report: "",
        shared: false,
      });
      if (lateWord) {
        const late = { type: "notified", notification: "reconfigureFinished" };
        await group.host.submit(`rank/${rank}/topology`, late);
      }
    }
    await Promise.all(others);
    return await settled(ours, ended, originals);
  };
  const first = await told("mixed");
  if (!again) return first;
  for (const rank of ours) engines.restart(rank, from);
  return { ...first, again: await told("again") };
}

async function settled(
  ours: readonly number[],
  ended: ReadonlyMap<number, ScalingOutput>,
  originals: Readonly<Record<number, string>>,
): Promise<Ending> {
  // Ours have their own limits, and may stay in doubt.
  const until = Date.now() + 18_000;
  while (ended.size < ours.length && Date.now() < until) {
    await new Promise((r) => setTimeout(r, 50));
  }
  return {
    ours: Object.fromEntries(ours.map((rank) => [rank, ended.get(rank)?.outcome ?? "waiting"])),
    originals,
    texts: [...ended.values()].flatMap((o) => o.cause === null ? [] : [o.cause.text]),
  };
}

/** Its second line, or how it died. */
function outcomeOf(p: Peer): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const silent = setTimeout(() => resolve("silent"), (LIMIT_S + 6) * 1000);
    const done = (outcome: string) => {
      clearTimeout(silent);
      resolve(outcome);
    };
    p.process.stdout!.on("data", (chunk) => {
      text += chunk;
      const line = text.split("\n").find((l) => l.startsWith("{"));
      if (line !== undefined) done((JSON.parse(line) as { outcome: string }).outcome);
    });
    p.process.on("close", () => done("died"));
  });
}

for (
  const [what, mixed] of [
    ["ours is rank 0, 3 to 2", { ours: [0], from: 3, to: 2 }],
    ["ours is rank 0, 2 to 4", { ours: [0], from: 2, to: 4 }],
    ["ours follow an original rank 0, 3 to 2", { ours: [1, 2], from: 3, to: 2 }],
    ["ours follows an original rank 0, 3 to 4", { ours: [1], from: 3, to: 4 }],
  ] as const
) {
  test(`${what}: everybody completes`, options, async (t) => {
    const { ours, originals } = await scale(t, mixed);
    assert.deepEqual(new Set(Object.values(ours)), new Set(["completed"]));
    assert.deepEqual(new Set(Object.values(originals)), new Set(["completed"]));
  });
}

test(
  "an original rank fails to prepare: ours reads its error and fails with it",
  options,
  async (t) => {
    const { ours, originals, texts } = await scale(t, {
      ours: [0],
      from: 3,
      to: 2,
      faults: { 1: "reinitialize" },
    });
    assert.deepEqual(ours, { 0: "failed" });
    assert.deepEqual(originals, { 1: "failed", 2: "failed" });
    assert.match(texts[0]!, /reinitialize_distributed method failed: on demand/);
  },
);

test(
  "an original rank that is to leave dies before it joins: ours votes, is in doubt and says so",
  options,
  async (t) => {
    const { ours, originals } = await scale(t, {
      ours: [0],
      from: 2,
      to: 1,
      faults: { 1: "dies-before-prepared" },
    });
    // Rank 1 is the one that leaves: nobody waits for its engine, so ours votes, and then it waits for a vote that never comes. In a mixed
    // cluster it does not abort by itself: it is in doubt, and says so.
    assert.deepEqual(originals, { 1: "died" });
    assert.deepEqual(ours, { 0: "waiting" });
  },
);

test(
  "an original rank never answers: the time limit of ours ends it for the others",
  options,
  async (t) => {
    const { ours, originals } = await scale(t, {
      ours: [0],
      from: 3,
      to: 4,
      faults: { 2: "silent" },
    });
    assert.deepEqual(ours, { 0: "failed" });
    assert.deepEqual(originals, { 1: "failed", 2: "silent" });
  },
);

test(
  "an original rank fails between its vote and its pause: nobody completes, and ours says failed",
  options,
  async (t) => {
    const { ours, originals, texts } = await scale(t, {
      ours: [0],
      from: 3,
      to: 2,
      faults: { 1: "after-vote" },
    });
    assert.equal(originals[1], "failed");
    assert.deepEqual(ours, { 0: "failed" });
    assert.match(texts[0]!, /pause_scheduler method failed: on demand/);
  },
);

test(
  "an original rank 0 dies between two writes and takes its store along: ours ends, before its vote, as failed",
  options,
  async (t) => {
    const { ours, originals } = await scale(t, {
      ours: [1],
      from: 2,
      to: 1,
      faults: { 0: "dies-between-writes" },
    });
    assert.equal(originals[0], "died");
    assert.deepEqual(ours, { 1: "failed" });
  },
);

test(
  "an original rank 0 meets a stranger at its scale-up handshake: its server ends, all fail with it, and the next operation succeeds",
  options,
  async (t) => {
    const { ours, originals, again } = await scale(t, {
      ours: [1],
      from: 2,
      to: 3,
      faults: { 0: "stranger" },
      again: true,
    });
    assert.deepEqual([ours, originals], [{ 1: "failed" }, { 0: "failed" }]);
    // Ours may see the epoch only when it has ended: whose it was nobody says, so it waits for one that is alive, to its time limit.
    assert.deepEqual([again?.ours, again?.originals], [{ 1: "completed" }, { 0: "completed" }]);
  },
);

test(
  "an original rank fails to prepare, and the next operation succeeds once engines were started anew",
  options,
  async (t) => {
    const { ours, again } = await scale(t, {
      ours: [0],
      from: 3,
      to: 2,
      faults: { 1: "reinitialize" },
      again: true,
    });
    assert.deepEqual(ours, { 0: "failed" });
    assert.deepEqual([again?.ours, again?.originals], [
      { 0: "completed" },
      { 1: "completed", 2: "completed" },
    ]);
  },
);

test(
  "an original rank's engine does not resume: 1 completed is written, 2 that rank writes an error all the same; ours keeps to completed",
  options,
  async (t) => {
    const { ours, originals } = await scale(t, {
      ours: [0, 2],
      from: 3,
      to: 2,
      faults: { 1: "resume" },
    });
    // Completed on ours and failed on the original, for one epoch: its own step after the end, which nobody can keep it from.
    assert.deepEqual([ours, originals], [{ 0: "completed", 2: "completed" }, { 1: "failed" }]);
  },
);

test(
  "an original rank takes an old notification for this operation's: 1 it writes the finish of E2 for E1's word, 2 ours sees every finish and completes, 3 that rank never switches",
  options,
  async (t) => {
    const { ours, originals } = await scale(t, {
      ours: [0],
      from: 3,
      to: 2,
      faults: { 1: "late-notification" },
    });
    // That completed implies every old rank finished is broken by the original's step; it is silent for ever.
    assert.deepEqual(ours, { 0: "completed" });
    assert.equal(originals[1], "silent");
  },
);

test(
  "an old notification of an engine of ours changes nothing, among originals too",
  options,
  async (t) => {
    const { ours, originals } = await scale(t, { ours: [1, 2], from: 3, to: 2, lateWord: true });
    assert.deepEqual([ours, originals], [{ 1: "completed", 2: "completed" }, { 0: "completed" }]);
  },
);
