import assert from "node:assert/strict";
import { test } from "node:test";
import {
  RayLauncher,
  type RayLauncherOptions,
  type RayOrder,
} from "../../../src/drivers/ray/launcher.ts";
import { LauncherError, type LaunchExit } from "../../../src/drivers/launchers/launcher.ts";
import { FakeRay } from "./fake-ray.ts";
import { until } from "../../until.ts";

const order = (id: string, script: string, more: Partial<RayOrder> = {}): RayOrder => ({
  id,
  ranks: [0],
  argv: ["sh", "-c", script],
  env: {},
  cwd: null,
  node: "node0",
  ip: "10.0.0.1",
  resources: { GPU: 1 },
  ...more,
});

interface Setting {
  readonly ray: FakeRay;
  readonly launcher: RayLauncher;
  readonly exits: LaunchExit[];
  /** Resolves with the exit of a launch. */
  readonly exitOf: (id: string) => Promise<LaunchExit>;
}

async function withLauncher(
  body: (setting: Setting) => Promise<void>,
  options: Partial<RayLauncherOptions> = {},
): Promise<void> {
  const ray = await FakeRay.open(4, 2);
  const launcher = await RayLauncher.open({
    url: ray.url,
    fleet: "t",
    leaseHost: "127.0.0.1",
    leaseMs: 2000,
    graceMs: 1000,
    ...options,
  });
  const exits: LaunchExit[] = [];
  const waiting = new Map<string, (exit: LaunchExit) => void>();
  launcher.exited((exit) => {
    exits.push(exit);
    waiting.get(exit.id)?.(exit);
  });
  const exitOf = (id: string): Promise<LaunchExit> =>
    new Promise((done) => {
      const before = exits.find((e) => e.id === id);
      if (before) done(before);
      else waiting.set(id, done);
    });
  try {
    await body({ ray, launcher, exits, exitOf });
  } finally {
    await launcher.detach();
    await ray.close();
  }
}

test("a rank runs on its node with its devices and environment; its exit code and last lines are told", () =>
  withLauncher(async ({ launcher, exitOf }) => {
    await launcher.start(order("hold", "sleep 60", { resources: { GPU: 2 } }));
    const launched = await launcher.start(
      order("e/0", "echo $CUDA_VISIBLE_DEVICES $MINE; echo last words >&2; exit 3", {
        env: { MINE: "it's mine" },
        ranks: [4, 5],
      }),
    );
    assert.deepEqual([launched.id, launched.pid], ["e/0", null]);
    const { end, ranks, asked, tail } = await exitOf("e/0");
    assert.deepEqual({ end, ranks, asked }, {
      end: { kind: "exit", code: 3 },
      ranks: [4, 5],
      asked: false,
    });
    assert.deepEqual([...tail].sort(), ["2 it's mine", "last words"]);
    assert.deepEqual(await launcher.logs("e/0", 1), [tail.at(-1)]);
  }));

test("a rank that is killed is told with its signal", () =>
  withLauncher(async ({ launcher, exitOf }) => {
    await launcher.start(order("a", "kill -SEGV $$"));
    assert.deepEqual((await exitOf("a")).end, { kind: "signal", signal: "SIGSEGV" });
  }));

test("stop is polite first and by force afterwards, and nothing is left", () =>
  withLauncher(async ({ ray, launcher, exitOf }) => {
    await launcher.start(order("good", "sleep 60"));
    await launcher.start(order("deaf", "trap '' TERM; echo deaf; sleep 60 & sleep 61"));
    assert.deepEqual(await launcher.started(["good", "deaf"], 10_000), []);
    await until(() => ray.jobs.get("t-deaf")!.output.includes("deaf"));
    assert.deepEqual(await launcher.stop("good", 5_000), { killed: false, left: false });
    assert.deepEqual((await exitOf("good")).asked, true);
    assert.deepEqual(await launcher.stop("deaf", 8_000), { killed: true, left: false });
    await until(() => ray.processes === 0 && launcher.claims().length === 0);
  }));

test("a job that was stopped before it started never starts its rank, though Ray starts it", () =>
  withLauncher(async ({ ray, launcher, exitOf }) => {
    await launcher.start(order("first", "sleep 60", { resources: { GPU: 4 } }));
    await launcher.start(order("second", "echo it ran"));
    assert.deepEqual(await launcher.started(["first"], 10_000), []);
    assert.deepEqual(await launcher.started(["second"], 300), ["second"]);
    await launcher.stop("second", 1_000);
    assert.equal((await exitOf("second")).end.kind, "not-started");
    assert.equal(ray.jobs.get("t-second")?.status, "PENDING", "Ray keeps it");
    await launcher.stop("first", 5_000);
    await until(() => ["FAILED", "STOPPED"].includes(ray.jobs.get("t-second")!.status));
    assert.doesNotMatch(ray.jobs.get("t-second")!.output, /it ran/);
  }));

test("the same launch again is the same process, also when Ray's answer was lost", () =>
  withLauncher(async ({ ray, launcher }) => {
    ray.loseAnswers = 1;
    await launcher.start(order("a", "sleep 60"));
    await launcher.start(order("a", "sleep 60"));
    assert.equal(ray.jobs.size, 1);
    assert.deepEqual(await launcher.started(["a"], 10_000), []);
    assert.equal(ray.processes, 1);
  }));

test("another order under an id that exists is refused", () =>
  withLauncher(async ({ ray, launcher }) => {
    const other = await RayLauncher.open({ url: ray.url, fleet: "t", leaseHost: null });
    await other.start(order("a", "sleep 60"));
    await assert.rejects(
      launcher.start(order("a", "sleep 61")),
      (e: unknown) =>
        e instanceof LauncherError && e.code === "launch-refused" && /new ids/.test(e.message),
    );
    await other.stop("a", 5_000);
    await other.detach();
  }));

test("a lost node: nobody knows how its rank ended, its processes end by their lease, its devices count until then", () =>
  withLauncher(async ({ ray, launcher, exitOf }) => {
    await launcher.start(order("a", "sleep 60", { node: "node1", ip: "10.0.0.2" }));
    assert.deepEqual(await launcher.started(["a"], 10_000), []);
    ray.loseNode("node1");
    const { end } = await exitOf("a");
    assert.deepEqual(end, {
      kind: "unknown",
      text: "Job supervisor actor died: its node has died.",
    });
    assert.equal(ray.processes, 1, "left behind");
    assert.deepEqual(launcher.claims().map((c) => c.node), ["node1"]);
    await until(() => ray.processes === 0);
    await until(() => launcher.claims().length === 0);
  }));

test("an entrypoint that is killed takes its rank with it", () =>
  withLauncher(async ({ ray, launcher, exitOf }) => {
    await launcher.start(order("a", "sleep 60 & sleep 61"));
    assert.deepEqual(await launcher.started(["a"], 10_000), []);
    ray.killEntrypoint("t-a");
    assert.deepEqual((await exitOf("a")).end, { kind: "signal", signal: "SIGKILL" });
    await until(() => ray.processes === 0);
  }));

test("a launcher that is gone leaves nothing: the leases run out", () =>
  withLauncher(async ({ ray, launcher }) => {
    await launcher.start(order("a", "sleep 60"));
    assert.deepEqual(await launcher.started(["a"], 10_000), []);
    await launcher.detach();
    await until(() => ray.processes === 0);
  }));

test("the next launcher finds the ranks of the one before, and stops those that nobody knows", () =>
  withLauncher(async ({ ray, launcher }) => {
    const [known, unknown, never] = [
      order("known", "sleep 60"),
      order("unknown", "sleep 60"),
      order("never", "sleep 60"),
    ];
    await launcher.start(known);
    await launcher.start(unknown);
    assert.deepEqual(await launcher.started(["known", "unknown"], 10_000), []);
    const leasePort = launcher.leasePort!;
    await launcher.detach();
    const next = await RayLauncher.open({
      url: ray.url,
      fleet: "t",
      leaseHost: "127.0.0.1",
      leasePort,
      leaseMs: 2000,
      graceMs: 1000,
    });
    assert.deepEqual(await next.adopt([known, never]), {
      found: ["known"],
      stopped: ["t-unknown"],
      missing: ["never"],
    });
    await until(() => ray.processes === 1);
    assert.deepEqual(await next.started(["known"], 10_000), []);
    await next.close();
    assert.equal(ray.processes, 0);
  }, { leaseMs: 10_000 }));

test("close stops everything", () =>
  withLauncher(async ({ ray, launcher }) => {
    await launcher.start(order("a", "sleep 60"));
    await launcher.start(order("b", "sleep 60", { node: "node1" }));
    assert.deepEqual(await launcher.started(["a", "b"], 10_000), []);
    await launcher.close();
    assert.equal(ray.processes, 0);
  }));

test("what cannot be opened says so", async () => {
  const coded = (code: string) => (e: unknown) => e instanceof LauncherError && e.code === code;
  const address = { url: "http://127.0.0.1:1", leaseHost: null, timeoutMs: 500 };
  await assert.rejects(
    RayLauncher.open({ ...address, fleet: "a b" }),
    coded("launch-refused"),
  );
  await assert.rejects(RayLauncher.open({ ...address, fleet: "t" }), coded("launcher-unreachable"));
});
