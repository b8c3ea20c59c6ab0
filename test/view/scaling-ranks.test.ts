/** Ranks that come and go while a cluster scales: who counts, and what is shown of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { headLine } from "../../src/cli/cluster-screen.ts";
import { verdictOf } from "../../src/console/model/verdict.ts";
import { DEFAULT_SCALING_LIMITS } from "../../src/machines/scaling.ts";
import { scalingStatus } from "../../src/view/scaling.ts";
import { countRanks, countsText, StatusFold, statusOf } from "../../src/view/mod.ts";
import { configuration, Run } from "../machines/fixture.ts";

const scaling: NonNullable<ReturnType<typeof configuration>["scaling"]> = {
  experts: 0,
  redundant: 0,
  maxSize: 4,
  limits: DEFAULT_SCALING_LIMITS,
  settleMs: 1000,
  handshake: { bind: "tcp://127.0.0.1:0", form: "wrapped" },
  joiner: { argv: ["engine", "{rank}"], env: {}, cwd: null, inherit: true },
};

const same = (text: string): string => text;
const plain = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same };

function formed(): Run {
  const run = new Run({ scaling });
  run.say("launcher", {
    type: "keeperPlaced",
    place: { mark: "m", directory: "/k" },
    call: callOf(run, "keeper.place"),
  });
  run.say("launcher", { type: "keeperUp", identity: { pid: 1, startTicks: 1, boot: "b" } });
  run.say("startup", {
    type: "storeServing",
    address: { host: "127.0.0.1", port: 29_500 },
    call: callOf(run, "store.serve"),
  });
  run.say("startup", {
    type: "bound",
    socket: "bus0",
    endpoints: { input: "ipc:///run/in", output: "ipc:///run/out" },
  });
  run.say("startup", {
    type: "bound",
    socket: "handshake",
    endpoints: { bind: "tcp://127.0.0.1:29550" },
  });
  for (const rank of [0, 1]) run.hello(rank);
  for (const rank of [0, 1]) run.ready(rank);
  return run;
}

/** The call of this type that the run made first. */
function callOf(run: Run, type: string): string {
  const made = run.steps.flatMap((s) => s.effects).find((e) =>
    e.kind === "call" && e.effect.type === type
  );
  return (made as { id: string }).id;
}

const head = (run: Run): string => headLine(statusOf(run.steps), 0, plain);

test("a rank that leaves is not expected any more: it is named beside those that are", () => {
  const run = formed();
  assert.match(head(run), /^cluster formed {2}2\/2 ready {2}/);
  run.say("rank/1/engine", { type: "leave" });
  assert.match(head(run), /^cluster formed {2}1\/1 ready, 1 leaving {2}/);
  assert.deepEqual([statusOf(run.steps).ready, statusOf(run.steps).connected], [1, 1]);
  assert.deepEqual(verdictOf(statusOf(run.steps), 0).sentence, "1/1 ready, 1 leaving.");
  run.say("rank/1/engine", { type: "exited", code: 0, signal: null });
  assert.match(head(run), /^cluster formed {2}1\/1 ready {2}/);
  assert.deepEqual(verdictOf(statusOf(run.steps), 0).title, "Serving");
});

test("a rank that was to leave and stays is expected again", () => {
  const run = formed();
  run.say("rank/1/engine", { type: "leave" });
  run.say("rank/1/engine", { type: "stay" });
  assert.match(head(run), / 2\/2 ready {2}/);
});

test("a rank that joins is shown from its launch on, and is gone when its operation fails", () => {
  const run = formed();
  run.say("operations", { type: "scaleAsked", operation: "up", target: 3, deadlineMs: 1000 });
  run.say("operation/up", { type: "rankGreeting", from: "rank/0/topology", endpoint: "tcp://x:1" });
  assert.match(head(run), / 2\/2 ready, 1 joining {2}/);
  assert.equal(statusOf(run.steps).size, 2);
  run.say("operations", { type: "abortAsked", operation: "up", text: "enough" });
  assert.match(head(run), / 2\/2 ready {2}/);
  assert.equal(statusOf(run.steps).ranks[2]?.state, "left");
});

test("the size is what scaling led to, also in a copy of the fold", () => {
  const run = formed();
  const fold = new StatusFold();
  for (const step of run.steps) fold.apply(step);
  assert.equal(fold.status().size, 2);
  assert.equal(fold.clone().status().size, 2);
});

test("whoever is lost is still expected", () => {
  const ranks = (["ready", "lost", "left", "leaving", "joining"] as const).map((state) => ({
    state,
  }));
  assert.deepEqual(countRanks(ranks), { expected: 2, ready: 1, joining: 1, leaving: 1 });
  assert.equal(countsText(ranks), "1/2 ready, 1 joining, 1 leaving");
});

test("an engine that dies while it serves: the status says so, and an operation that is asked for is refused with the reason", () => {
  const run = formed();
  assert.equal(scalingStatus(run.system)?.broken, null);
  run.say("rank/1/engine", { type: "exited", code: null, signal: "SIGKILL" });
  assert.match(head(run), / 1\/2 ready {2}/);
  assert.equal(scalingStatus(run.system)?.broken, "rank 1: engine-exited");
  const asked = run.say("operations", {
    type: "scaleAsked",
    operation: "down",
    target: 1,
    deadlineMs: 1000,
  });
  const answers = asked.effects.flatMap((e) => e.kind === "message" ? [e.effect] : []);
  assert.deepEqual(answers, [{
    type: "operation.answer",
    operation: "down",
    outcome: "refused",
    text: "the cluster does not serve: rank 1: engine-exited",
  }]);
});

test("before it has formed up a cluster does not scale", () => {
  const run = new Run({ scaling });
  const asked = run.say("operations", {
    type: "scaleAsked",
    operation: "early",
    target: 1,
    deadlineMs: 1000,
  });
  const [answer] = asked.effects.flatMap((e) => e.kind === "message" ? [e.effect] : []);
  assert.equal(
    (answer as { text?: string }).text,
    "the cluster does not serve: it has not formed up yet",
  );
});
