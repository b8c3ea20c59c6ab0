import assert from "node:assert/strict";
import { test } from "node:test";
import { NoRoomError, RayFleet } from "../../../src/drivers/ray/fleet.ts";
import { RayError } from "../../../src/drivers/ray/error.ts";
import { RayLauncher } from "../../../src/drivers/ray/launcher.ts";
import { FakeRay } from "./fake-ray.ts";

async function withFleet(
  body: (fleet: RayFleet, ray: FakeRay, launcher: RayLauncher) => Promise<void>,
  worldSize = 2,
): Promise<void> {
  const ray = await FakeRay.open(4, 4);
  const launcher = await RayLauncher.open({
    url: ray.url,
    fleet: "f",
    leaseHost: "127.0.0.1",
    leaseMs: 2000,
    graceMs: 1000,
  });
  const fleet = new RayFleet(launcher, {
    strategy: "fill",
    deviceKey: "GPU",
    worldSize,
    masterIp: "10.0.0.1",
    localSize: 1,
    command: (rank) => ({ argv: ["sh", "-c", `echo rank ${rank.rank}; exec sleep 60`] }),
    generation: "1",
    startDeadlineMs: 2000,
    stopDeadlineMs: 5000,
  });
  try {
    await body(fleet, ray, launcher);
  } finally {
    await launcher.detach();
    await ray.close();
  }
}

const places = (fleet: RayFleet): string =>
  fleet.placement?.ranks.map((r) => `${r.on[0]!.node}.${r.localRank}`).join(" ") ?? "none";

test("ranks start where the plan says, become more and fewer; the highest go first", () =>
  withFleet(async (fleet, ray) => {
    await fleet.scaleTo(2);
    assert.equal(places(fleet), "node0.0 node1.0");
    await fleet.scaleTo(4);
    assert.equal(places(fleet), "node0.0 node1.0 node0.1 node1.1");
    assert.equal(ray.processes, 4);
    const kept = [fleet.launchOf(0), fleet.launchOf(1)];
    await fleet.scaleTo(2);
    assert.equal(places(fleet), "node0.0 node1.0");
    assert.deepEqual([fleet.launchOf(0), fleet.launchOf(1), fleet.launchOf(2)], [
      ...kept,
      undefined,
    ]);
    const running = [...ray.jobs.values()].filter((j) => j.status === "RUNNING").map((j) => j.id);
    assert.deepEqual(running, ["f-g1-r0-a1", "f-g1-r1-a1"]);
  }));

test("what does not fit is refused before Ray is asked, with what would help", () =>
  withFleet(async (fleet, ray) => {
    await fleet.scaleTo(3);
    const jobs = ray.submitted.length;
    await assert.rejects(fleet.scaleTo(5), (e: unknown) =>
      e instanceof NoRoomError &&
      e.message ===
        "1 of the 2 additional ranks of 2 GPU find a place. Add a node with 2 free devices.");
    assert.equal(ray.submitted.length, jobs);
    assert.equal(places(fleet).split(" ").length, 3);
  }));

test("somebody was faster: all that was started is taken back, and the next attempt works", () =>
  withFleet(async (fleet, ray, launcher) => {
    ray.frozen = ray.usage();
    const rival = await RayLauncher.open({ url: ray.url, fleet: "rival", leaseHost: null });
    const original = launcher.api.snapshot.bind(launcher.api);
    launcher.api.snapshot = async (own) => {
      const nodes = await original(own);
      await rival.start({
        id: "thief",
        ranks: [0],
        argv: ["sleep", "60"],
        env: {},
        cwd: null,
        node: "node1",
        ip: "10.0.0.2",
        resources: { GPU: 4 },
      });
      return nodes;
    };
    await assert.rejects(
      fleet.scaleTo(2),
      (e: unknown) =>
        e instanceof RayError && e.code === "ray-not-started" &&
        e.message === "rank 1 (2 GPU on 10.0.0.2) did not start in 2000 ms; all 2 were taken back",
    );
    assert.equal(fleet.placement, null);
    launcher.api.snapshot = original;
    await rival.stop("thief", 5000);
    await rival.detach();
    await fleet.scaleTo(2);
    assert.equal(places(fleet), "node0.0 node1.0");
    const ran = [...ray.jobs.values()].filter((j) => j.id.startsWith("f-g1-r1-a1"));
    assert.doesNotMatch(ran[0]!.output, /rank 1/, "the queued job never became a rank");
  }));

test("changes wait for each other", () =>
  withFleet(async (fleet, ray) => {
    await Promise.all([fleet.scaleTo(2), fleet.scaleTo(4), fleet.scaleTo(1)]);
    assert.equal(places(fleet), "node0.0");
    assert.equal([...ray.jobs.values()].filter((j) => j.status === "RUNNING").length, 1);
  }));
