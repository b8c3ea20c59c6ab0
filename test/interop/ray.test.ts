import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { Coordinator } from "../../src/coordinator.ts";
import type { LaunchExit } from "../../src/drivers/launchers/launcher.ts";
import { NoRoomError, RayFleet, RayLauncher } from "../../src/drivers/ray/mod.ts";
import { freePort, RayCluster, withoutRay } from "./ray-cluster.ts";

/**
 * A real Ray (2.58) on this machine, two nodes with pretend GPUs, and a cluster of reference engines on it: planned
 * from what Ray says is free, started as jobs, shaken hands with, made more and fewer.
 */
const skip = withoutRay;
let cluster: RayCluster;
let launcher: RayLauncher;
let fleet: RayFleet;
let coordinator: Coordinator;
const exits: LaunchExit[] = [];

const places = (): string =>
  fleet.placement!.ranks.map((r) => `${r.on[0]!.ip}/${r.localRank}`).join(" ");
const running = async (): Promise<string[]> =>
  (await launcher.api.jobs())
    .filter((j) => j.status === "RUNNING" && j.metadata["fleet"] === launcher.fleet)
    .map((j) => j.metadata["ranks"]!).sort();
const freeGpus = async (): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await launcher.api.snapshot(launcher.claims()))
      .map((n) => [n.ip!, n.available!["GPU"]!]),
  );
async function until(truth: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 240 && !(await truth()); i++) {
    await new Promise((done) => setTimeout(done, 500));
  }
  assert.ok(await truth(), `still not: ${truth}`);
}

/** The entrypoint of a job: the leader of its session among the processes that have its guard's command line. */
function guardOf(launch: string): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const session = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[3];
      const job = words[words.indexOf("muster-guard") + 1] ?? "";
      if (words.includes("muster-guard") && job.endsWith(launch) && session === pid) {
        return Number(pid);
      }
    } catch { /* it is gone */ }
  }
  throw new Error(`no guard of ${launch} runs`);
}

before(async () => {
  if (skip) return;
  cluster = await RayCluster.start();
  launcher = await RayLauncher.open({
    url: cluster.url,
    fleet: `interop-${process.pid}`,
    leaseHost: "127.0.0.1",
    leaseMs: 8000,
    graceMs: 2000,
  });
  launcher.exited((exit) => exits.push(exit));
  // A node that has just joined is listed before Ray knows what is free on it.
  await until(async () => (await launcher.api.snapshot()).every((n) => n.available !== null));
  const port = await freePort("127.0.0.1");
  const engine = [
    ...[process.execPath, "--import", resolve("node_modules/tsx/dist/loader.mjs")],
    ...[resolve("src/cli/main.ts"), "engine", "--headless", "--load-ms", "50"],
    ...["--handshake", `tcp://127.0.0.1:${port}`],
  ];
  coordinator = await Coordinator.start({
    cluster: {
      dataParallelSize: 3,
      dataParallelSizeLocal: 0,
      dataParallelAddress: "127.0.0.1",
      dataParallelRpcPort: port,
      allowLoopback: true,
    },
    onFailure: "hold",
  });
  fleet = new RayFleet(launcher, {
    strategy: "fill",
    deviceKey: "GPU",
    worldSize: 2,
    masterIp: "127.0.0.2",
    localSize: 2,
    command: ({ rank }) => ({
      argv: rank < 3
        ? [...engine, "--rank", String(rank)]
        : ["sh", "-c", "echo devices $CUDA_VISIBLE_DEVICES; exec sleep 600"],
      cwd: process.cwd(),
    }),
    startDeadlineMs: 120_000,
  });
}, { timeout: 400_000 });

after(async () => {
  if (skip) return;
  await coordinator?.close();
  await launcher?.close();
  await cluster?.stop();
});

test(
  "Ray's nodes and free devices go into the planner, and a cluster of engines forms up on them",
  { skip },
  async () => {
    assert.deepEqual(await freeGpus(), { "127.0.0.2": 8, "127.0.0.3": 4 });
    await fleet.scaleTo(3);
    assert.equal(places(), "127.0.0.2/0 127.0.0.2/1 127.0.0.3/0");
    const status = await coordinator.ready();
    assert.equal(status.ready, 3);
    assert.deepEqual(await running(), ["0", "1", "2"]);
    assert.deepEqual(await freeGpus(), { "127.0.0.2": 4, "127.0.0.3": 2 });
  },
);

test("scale up: more ranks on what is free, each with devices of its own", { skip }, async () => {
  await fleet.scaleTo(5);
  assert.equal(places(), "127.0.0.2/0 127.0.0.2/1 127.0.0.3/0 127.0.0.2/2 127.0.0.2/3");
  const said = async () => (await launcher.logs(fleet.launchOf(4)!, 1))[0]!.startsWith("devices");
  await until(said);
  const devices = await Promise.all([3, 4].map((rank) => launcher.logs(fleet.launchOf(rank)!, 1)));
  assert.deepEqual(devices, [["devices 4,5"], ["devices 6,7"]]);
});

test(
  "an infeasible request is refused before Ray is asked, with what would help",
  { skip },
  async () => {
    const jobs = (await launcher.api.jobs()).length;
    await assert.rejects(fleet.scaleTo(9), (e: unknown) =>
      e instanceof NoRoomError &&
      e.message ===
        "1 of the 4 additional ranks of 2 GPU find a place. Add a node with 6 free devices.");
    assert.equal((await launcher.api.jobs()).length, jobs);
  },
);

test("what Ray itself finds infeasible does not start, and is told as such", { skip }, async () => {
  const { node, ip } = fleet.placement!.ranks[2]!.on[0]!;
  const order = {
    id: "too-big",
    ranks: [9],
    argv: ["echo", "it ran"],
    env: {},
    cwd: null,
    node,
    ip,
    resources: { GPU: 5 },
  };
  await launcher.start(order);
  assert.deepEqual(await launcher.started(["too-big"], 3000), ["too-big"]);
  await launcher.stop("too-big", 1000);
  await until(() => exits.some((e) => e.id === "too-big"));
  assert.equal(exits.find((e) => e.id === "too-big")!.end.kind, "not-started");
});

test(
  "scale down: the highest ranks go, their devices come back, and the others stay",
  { skip },
  async () => {
    await fleet.scaleTo(4);
    assert.deepEqual(await running(), ["0", "1", "2", "3"]);
    const end = exits.find((e) => e.ranks[0] === 4)!;
    assert.deepEqual([end.asked, end.end], [true, { kind: "signal", signal: "SIGTERM" }]);
    await until(async () => (await freeGpus())["127.0.0.2"] === 2);
  },
);

test(
  "a job that is killed is told with its signal, and its devices come back",
  { skip },
  async () => {
    const launch = fleet.launchOf(3)!;
    process.kill(guardOf(launch), "SIGKILL");
    await until(() => exits.some((e) => e.id === launch));
    const { end, asked } = exits.find((e) => e.id === launch)!;
    assert.deepEqual([end, asked], [{ kind: "signal", signal: "SIGKILL" }, false]);
    await until(async () => (await freeGpus())["127.0.0.2"] === 4);
  },
);

test("after close nothing is left: no job runs, every device is free", { skip }, async () => {
  await coordinator.close();
  const { api } = launcher;
  await launcher.close();
  const left = (await api.jobs()).filter((j) =>
    j.status === "RUNNING" && j.metadata["launcher"] === "muster"
  );
  assert.deepEqual(left, []);
});
