import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { LaunchExit } from "../../../src/drivers/launchers/launcher.ts";
import { LocalLauncher, type LocalOrder } from "../../../src/drivers/launchers/local.ts";
import { environmentOf, withDevices } from "../../../src/drivers/launchers/environment.ts";
import { sendSignal } from "../../../src/drivers/process-table.ts";
import { planDevices, PLATFORMS } from "../../../src/planning/mod.ts";

async function launcher(t: TestContext, leaseMs = 0): Promise<{
  launcher: LocalLauncher;
  ended: (id: string) => Promise<LaunchExit>;
}> {
  const logs = mkdtempSync(join(tmpdir(), "ml-"));
  const launcher = await LocalLauncher.open({ logs, leaseMs });
  t.after(async () => {
    await launcher.close(100);
    rmSync(logs, { recursive: true, force: true });
  });
  return { launcher, ended: collect(launcher) };
}

function collect(launcher: LocalLauncher): (id: string) => Promise<LaunchExit> {
  const exits = new Map<string, LaunchExit>();
  const waiting = new Map<string, (exit: LaunchExit) => void>();
  launcher.exited((exit) => {
    exits.set(exit.id, exit);
    waiting.get(exit.id)?.(exit);
  });
  return (id) =>
    new Promise((resolve) => {
      const known = exits.get(id);
      if (known !== undefined) resolve(known);
      else waiting.set(id, resolve);
    });
}

const order = (id: string, script: string, more: Partial<LocalOrder> = {}): LocalOrder => ({
  id,
  ranks: [0, 1],
  argv: ["sh", "-c", script],
  env: {},
  cwd: null,
  ...more,
});

test("a launch starts, says what it says, and its end is told with all its ranks", async (t) => {
  const { launcher: local, ended } = await launcher(t);
  const launched = await local.start(order("a", "echo hello; exit 3"));
  assert.ok(launched.pid !== null && launched.pid > 0);
  const { ranks, end, asked, tail } = await ended("a");
  assert.deepEqual({ ranks, end, asked, tail }, {
    ranks: [0, 1],
    end: { kind: "exit", code: 3 },
    asked: false,
    tail: ["hello"],
  });
  assert.deepEqual(await local.logs("a"), ["hello"]);
});

test("what was asked to stop is told apart from what ended by itself", async (t) => {
  const { launcher: local, ended } = await launcher(t);
  await local.start(order("a", "exec sleep 60"));
  await local.start(order("b", "kill -KILL $$"));
  assert.deepEqual(await local.stop("a", 5000), { killed: false, left: false });
  const a = await ended("a");
  const b = await ended("b");
  assert.deepEqual([a.end, a.asked], [{ kind: "signal", signal: "SIGTERM" }, true]);
  assert.deepEqual([b.end, b.asked], [{ kind: "signal", signal: "SIGKILL" }, false]);
  // It has ended already: no error.
  assert.deepEqual(await local.stop("a", 5000), { killed: false, left: false });
  await assert.rejects(local.stop("never", 1), { code: "unknown-launch" });
});

test("a program that is not there never started, and says so", async (t) => {
  const { launcher: local, ended } = await launcher(t);
  await local.start(order("a", "", { argv: ["no-such-engine"] }));
  const { end } = await ended("a");
  assert.equal(end.kind, "not-started");
  await assert.rejects(local.start(order("b", "", { argv: [] })), { code: "launch-refused" });
});

test("when the keeper is lost, how launches ended is unknown and not invented", async (t) => {
  const { launcher: local, ended } = await launcher(t);
  await local.start(order("a", "exec sleep 60"));
  sendSignal(local.keeperPid, "SIGKILL");
  const { end, ranks } = await ended("a");
  assert.equal(end.kind, "unknown");
  assert.deepEqual(ranks, [0, 1]);
  await assert.rejects(local.start(order("b", "exit 0")), { code: "launcher-unreachable" });
});

test("the next coordinator adopts what runs, and hears of what ended meanwhile", async (t) => {
  const { launcher: first } = await launcher(t, 60_000);
  const { pid } = await first.start(order("a", "exec sleep 60"));
  await first.start(order("b", "sleep 0.3; exit 9"));
  first.detach();
  await new Promise((resolve) => setTimeout(resolve, 700));
  const logs = mkdtempSync(join(tmpdir(), "ml-"));
  t.after(() => rmSync(logs, { recursive: true, force: true }));
  const second = await LocalLauncher.open({ logs, fence: 2, adopt: first.place });
  t.after(() => second.close(100));
  const ended = collect(second);
  assert.deepEqual((await ended("b")).end, { kind: "exit", code: 9 });
  // Starting it again under the same id finds it.
  assert.equal((await second.start(order("a", "exec sleep 60"))).pid, pid);
});

test("devices reach the launch in the order of its ranks, and the launch's own words win", () => {
  const planned = planDevices({
    platform: PLATFORMS.cuda,
    localRanks: 4,
    worldSize: 2,
    count: null,
    visible: "7,6,5,4,3,2,1,0",
  });
  assert.ok(planned.ok);
  const own = { PATH: "/bin", SECRET: "s", MUSTER_LAUNCH: "outer/x", HOME: "/h" };
  const devices = { map: planned.plan, localRanks: [1, 3] };
  assert.deepEqual(environmentOf({ own, inherit: false, env: { A: "1" }, devices }), {
    PATH: "/bin",
    HOME: "/h",
    CUDA_VISIBLE_DEVICES: "5,4,1,0",
    A: "1",
  });
  assert.deepEqual(
    environmentOf({ own, inherit: true, env: { CUDA_VISIBLE_DEVICES: "3" }, devices }),
    { PATH: "/bin", SECRET: "s", HOME: "/h", CUDA_VISIBLE_DEVICES: "3" },
  );
});

test("each of several launches sees the devices of its own ranks", () => {
  const planned = planDevices({
    platform: PLATFORMS.rocm,
    localRanks: 3,
    worldSize: 2,
    count: null,
    explicit: [["GPU-a", "GPU-b"], ["GPU-c", "GPU-d"], ["GPU-e", "GPU-f"]],
  });
  assert.ok(planned.ok, JSON.stringify(planned));
  const launch = (id: string, ranks: number[], env = {}) => ({
    id,
    ranks,
    argv: ["engine"],
    env,
    cwd: null,
    inherit: true,
  });
  const [one, two] = withDevices(
    [launch("n0", [4, 5]), launch("n1", [6], { A: "1" })],
    planned.plan,
  );
  assert.deepEqual([one?.env, two?.env], [
    { CUDA_VISIBLE_DEVICES: "GPU-a,GPU-b,GPU-c,GPU-d" },
    { CUDA_VISIBLE_DEVICES: "GPU-e,GPU-f", A: "1" },
  ]);
});
