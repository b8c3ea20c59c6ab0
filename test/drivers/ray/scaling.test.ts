import assert from "node:assert/strict";
import { test } from "node:test";
import { RayLauncher, RayScalingDriver } from "../../../src/drivers/ray/mod.ts";
import { ScalingDrawDriver } from "../../../src/drivers/scaling-engines.ts";
import { ScalingStoreDriver } from "../../../src/drivers/scaling-store.ts";
import { Host } from "../../../src/host/mod.ts";
import { MemoryStore } from "../../../src/journal/mod.ts";
import { Kernel } from "../../../src/kernel/mod.ts";
import {
  type Bootstrap,
  type RayScalingContext,
  rayScalingSystem,
} from "../../../src/machines/mod.ts";
import { planPlacement } from "../../../src/planning/mod.ts";
import { MemoryEngines } from "../../../src/testing/memory-engines.ts";
import { FakeRay } from "./fake-ray.ts";
import { until } from "../../until.ts";

interface Deployment {
  readonly ray: FakeRay;
  readonly engines: MemoryEngines;
  readonly host: Host;
  /** Asks for a size; resolves with the last answer to the operation. */
  readonly scale: (operation: string, target: number) => Promise<string>;
  readonly context: () => RayScalingContext;
  readonly running: () => string[];
}

/**
 * A deployment on a pretend Ray: the real machine, host, launcher and jobs, a real store over TCP, and engines in memory
 * that meet, write their ready keys and notify as the newest releases do.
 */
async function withDeployment(
  size: number,
  body: (deployment: Deployment) => Promise<void>,
): Promise<void> {
  const ray = await FakeRay.open(4, 4);
  const closing: (() => Promise<void>)[] = [() => ray.close()];
  try {
    await body(await deploy(ray, size, closing));
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

async function deploy(
  ray: FakeRay,
  size: number,
  closing: (() => Promise<void>)[],
): Promise<Deployment> {
  const launcher = await RayLauncher.open({
    url: ray.url,
    fleet: "d",
    leaseHost: "127.0.0.1",
    leaseMs: 2000,
    graceMs: 1000,
  });
  closing.push(() => launcher.detach());
  const first = planPlacement({
    nodes: await launcher.api.snapshot(),
    strategy: "fill",
    deviceKey: "GPU",
    size,
    localSize: 1,
    worldSize: 1,
    masterIp: "10.0.0.1",
  });
  assert.ok(first.ok);
  const placement = first.plan;
  const launches = placement.ranks.map((r) => `first-r${r.rank}`);
  for (const { rank, on: [share] } of placement.ranks) {
    await launcher.start({
      id: launches[rank]!,
      ranks: [rank],
      argv: ["sleep", "60"],
      env: {},
      cwd: null,
      node: share!.node,
      ip: share!.ip,
      resources: { GPU: 1 },
    });
  }
  assert.deepEqual(await launcher.started(launches, 10_000), []);

  const engines = new MemoryEngines(size);
  closing.push(() => engines.close());
  const answers = new Map<string, (text: string) => void>();
  let joined: (rank: number) => void = () => {};
  let bootstrap: Bootstrap | undefined;
  const host: Host = await Host.open({
    kernel: new Kernel(rayScalingSystem) as never,
    journal: new MemoryStore(),
    drivers: [
      new ScalingStoreDriver() as never,
      new ScalingDrawDriver(({ operation, outcome, text }) => {
        if (outcome !== "accepted") {
          answers.get(operation)?.(`${outcome}${text ? `: ${text}` : ""}`);
        }
      }) as never,
      new RayScalingDriver({
        launcher,
        engines: {
          call: (rank, utility, call) => engines.call(rank, utility, call),
          onNotification: (listener) => engines.onNotification(listener),
          onJoined: (listener) => joined = listener,
        },
        command: (_, told) => {
          bootstrap = told;
          return { argv: ["sh", "-c", "echo $VLLM_ELASTIC_EP_SCALE_UP_LAUNCH; exec sleep 60"] };
        },
        startDeadlineMs: 3000,
        stopDeadlineMs: 5000,
      }) as never,
    ],
    configuration: {
      type: "configured",
      input: {
        flow: "two-phase",
        placement,
        launches,
        maxSize: 16,
        masterIp: "127.0.0.1",
        experts: null,
        deadlineMs: 20_000,
        settleMs: 3_000,
      },
    },
  });
  closing.push(() => host.close());
  // Real engines join by themselves; these do when all jobs of theirs have started. Several inputs may be in the state by the
  // time they are heard of one by one, so that "the last one" can be seen twice.
  let joining: string | undefined;
  const context = () => host.system.instances.get("ray-scaling")!.state.snapshot.context;
  host.subscribe(({ input }) => {
    if (input.event.type !== "rankLaunched") return;
    const { operation, target, placement: now, waiting } = context() as RayScalingContext;
    if (waiting.some((w) => w.startsWith("launch/")) || joining === operation) return;
    joining = operation!;
    const ranks = Array.from({ length: target - now.ranks.length }, (_, i) => now.ranks.length + i);
    engines.join(ranks, bootstrap!);
    setTimeout(() => ranks.forEach((rank) => joined(rank)), 10);
  });
  const scale = (operation: string, target: number): Promise<string> =>
    new Promise((done) => {
      answers.set(operation, done);
      void host.submit("ray-scaling", { type: "scale", operation, target });
    });
  const running = () =>
    [...ray.jobs.values()].filter((j) => j.status === "RUNNING").map((j) => j.metadata["launch"]!);
  return { ray, engines, host, scale, context, running };
}

test("a deployment on Ray is scaled up and down while it serves: jobs, engines and store agree", () =>
  withDeployment(2, async ({ scale, context, running, ray }) => {
    assert.equal(await scale("up", 4), "completed");
    assert.deepEqual(running(), ["first-r0", "first-r1", "up-r2", "up-r3"]);
    await until(() => ray.jobs.get("d-up-r2")!.output === "1\n"); // new ranks know that they join
    const { placement } = context();
    assert.deepEqual(placement.ranks.map((r) => r.on[0]!.node), [
      "node0",
      "node1",
      "node0",
      "node0",
    ]);
    assert.equal(await scale("down", 1), "completed");
    assert.deepEqual(running(), ["first-r0"]);
    assert.equal(await scale("again", 2), "completed");
    assert.deepEqual(running(), ["first-r0", "again-r1"]);
  }));

test("an engine that refuses to prepare: new jobs are taken back, and the record says what to restart", () =>
  withDeployment(2, async ({ scale, context, running, engines }) => {
    engines.faults.set("1 reinitialize_distributed", "fails");
    assert.equal(
      await scale("up", 3),
      "failed: rank 1: Call to reinitialize_distributed method failed: on demand",
    );
    await until(() => running().length === 2); // one that has not started ends by its guard
    assert.deepEqual(context().enginesToRestart, [0, 1]);
  }));

test("more than there is room for is refused by the planner, and nothing was asked of anybody", () =>
  withDeployment(2, async ({ scale, ray }) => {
    const jobs = ray.submitted.length;
    assert.match(
      await scale("up", 12),
      /^failed: 6 of the 10 additional ranks of 1 GPU find a place\./,
    );
    assert.equal(ray.submitted.length, jobs);
  }));
