import fc from "fast-check";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addRanks,
  type Change,
  claims,
  nextStep,
  type NodeSnapshot,
  type Placement,
  type PlacementRequest,
  planPlacement,
  remedied,
  removeRanks,
  startRollout,
  stepDone,
  stepFailed,
} from "../../../src/planning/mod.ts";

/** Replay with the seed and path that a failure prints: `fc.assert(..., { seed, path, endOnFailure: true })`. */
const RUNS = { numRuns: 500 };

const snapshot: fc.Arbitrary<NodeSnapshot[]> = fc.array(
  fc.record({
    // Often plenty, so that many requests can be placed.
    free: fc.oneof(fc.nat({ max: 9 }), fc.integer({ min: 4, max: 9 })),
    busy: fc.nat({ max: 4 }),
    gpu: fc.nat({ max: 9 }).map(Boolean),
  }),
  { minLength: 1, maxLength: 6 },
).map((nodes) =>
  nodes.map(({ free, busy, gpu }, i) => ({
    id: `n${i}`,
    available: { [`node:10.0.0.${i}`]: 1, ...(gpu && free > 0 ? { GPU: free } : {}) },
    total: { [`node:10.0.0.${i}`]: 1, ...(gpu ? { GPU: free + busy } : {}) },
  }))
);

const request: fc.Arbitrary<PlacementRequest> = fc.record({
  nodes: snapshot,
  deviceKey: fc.constant("GPU"),
  strategy: fc.constantFrom("strict" as const, "fill" as const, "span" as const),
  size: fc.oneof(fc.integer({ min: 1, max: 2 }), fc.integer({ min: 1, max: 6 })),
  localSize: fc.nat({ max: 2 }),
  worldSize: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 2 }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 12 }) },
  ),
  masterIp: fc.nat({ max: 2 }).map((i) => `10.0.0.${i}`),
});

const planned = (r: PlacementRequest): Placement | null => {
  const answer = planPlacement(r);
  return answer.ok ? answer.plan : null;
};
const freeOf = (nodes: readonly NodeSnapshot[]) =>
  new Map(nodes.map((n) => [n.id, Math.floor(n.available?.["GPU"] ?? 0)]));

test("property: exactly the asked number of ranks, contiguous, each with all its devices", () => {
  let placed = 0;
  fc.assert(
    fc.property(request, (r) => {
      const placement = planned(r);
      if (!placement) return;
      placed++;
      assert.deepEqual(placement.ranks.map((x) => x.rank), [...Array(r.size).keys()]);
      for (const { on } of placement.ranks) {
        assert.equal(on.reduce((sum, share) => sum + share.devices, 0), r.worldSize);
        if (r.strategy !== "span") assert.equal(on.length, 1);
      }
    }),
    RUNS,
  );
  assert.ok(placed > RUNS.numRuns / 5, `only ${placed} requests could be placed`);
});

test("property: no device twice: no node gives more than it has free, local ranks are contiguous", () => {
  fc.assert(
    fc.property(request, (r) => {
      const placement = planned(r);
      if (!placement) return;
      const free = freeOf(r.nodes);
      for (const [node, taken] of claims(placement)) assert.ok(taken <= free.get(node)!);
      const byNode = new Map<string, number[]>();
      for (const { on, localRank } of placement.ranks) {
        byNode.set(on[0]!.node, [...byNode.get(on[0]!.node) ?? [], localRank]);
      }
      for (const locals of byNode.values()) assert.deepEqual(locals, [...locals.keys()]);
    }),
    RUNS,
  );
});

test("property: the master has its share, and strict gives every node the same", () => {
  fc.assert(
    fc.property(request, (r) => {
      const placement = planned(r);
      if (!placement || r.strategy === "span") return;
      const perNode = placement.nodes.filter((n) => n.ranks.length).map((n) => n.ranks.length);
      const master = placement.nodes.find((n) => n.master)!;
      assert.equal(master.ranks.length, Math.min(r.localSize, r.size));
      if (r.strategy === "strict") {
        assert.equal(new Set(perNode.slice(0, -1)).size <= 1, true);
        assert.ok(perNode.length < 2 || perNode.at(-1)! <= perNode[0]!);
      }
    }),
    RUNS,
  );
});

test("property: deterministic, and a node that joins after the snapshot changes nothing", () => {
  fc.assert(
    fc.property(request, (r) => {
      const nodes = structuredClone(r.nodes);
      const first = planPlacement(r);
      assert.deepEqual(planPlacement({ ...r, nodes }), first);
      assert.deepEqual(r.nodes, nodes);
    }),
    RUNS,
  );
});

test("property: fill places whatever whole ranks on single nodes can be placed, so no strategy of that kind does better", () => {
  fc.assert(
    fc.property(request, (r) => {
      const fill = planned({ ...r, strategy: "fill" });
      const fits = (id: string) => Math.floor(freeOf(r.nodes).get(id)! / r.worldSize);
      const master = r.nodes.findIndex((_, i) => r.masterIp === `10.0.0.${i}`);
      const others = r.nodes.reduce((sum, n, i) => sum + (i === master ? 0 : fits(n.id)), 0);
      const possible = master >= 0 && r.localSize <= r.size && fits(`n${master}`) >= r.localSize &&
        r.localSize + others >= r.size;
      assert.equal(fill !== null, possible);
      if (planned({ ...r, strategy: "strict" })) assert.notEqual(fill, null);
      if (planned({ ...r, strategy: "span" })) {
        assert.ok(r.nodes.every((n) => fits(n.id) === 0), "span only where no rank fits on a node");
      }
    }),
    RUNS,
  );
});

test("property: every remedy of a refusal makes the placement possible", () => {
  let refusals = 0;
  let remedies = 0;
  fc.assert(
    fc.property(request, (r) => {
      const answer = planPlacement(r);
      if (answer.ok) return;
      refusals++;
      for (const remedy of answer.refusals[0]!.remedies) {
        remedies++;
        assert.ok(planPlacement(remedied(r, remedy)).ok, JSON.stringify(remedy));
      }
    }),
    RUNS,
  );
  assert.ok(remedies > refusals / 2, `${remedies} remedies for ${refusals} refusals`);
});

test("property: a remedy that frees devices frees the fewest that are enough on any one node", () => {
  fc.assert(
    fc.property(request, (r) => {
      const answer = planPlacement(r);
      const change = answer.ok ? undefined : answer.refusals[0]!.remedies
        .find((x) => x.length === 1 && x[0]!.kind === "devices")?.[0];
      if (change?.kind !== "devices") return;
      if (change.more === 1) return;
      for (const node of r.nodes) {
        const busy = (node.total?.["GPU"] ?? 0) - (node.available?.["GPU"] ?? 0);
        if (busy < change.more - 1) continue;
        const fewer: Change & { kind: "devices" } = {
          ...change,
          node: node.id,
          more: change.more - 1,
        };
        assert.equal(planPlacement(remedied(r, [fewer])).ok, false);
      }
    }),
    RUNS,
  );
});

/** What is free once a placement holds its devices. */
const after = (nodes: readonly NodeSnapshot[], placement: Placement): NodeSnapshot[] => {
  const held = claims(placement);
  return nodes.map((n) => ({
    ...n,
    available: { ...n.available, GPU: freeOf(nodes).get(n.id)! - (held.get(n.id) ?? 0) },
  }));
};

test("property: adding then removing restores ranks and devices", () => {
  let added = 0;
  fc.assert(
    fc.property(request, fc.integer({ min: 1, max: 4 }), (r, more) => {
      const placement = planned(r);
      if (!placement) return;
      const grown = addRanks(placement, after(r.nodes, placement), r.masterIp, r.size + more);
      if (!grown.ok) return;
      added++;
      assert.deepEqual(grown.plan.ranks.slice(0, r.size), placement.ranks);
      const free = freeOf(r.nodes);
      for (const [node, taken] of claims(grown.plan)) assert.ok(taken <= free.get(node)!);
      const back = removeRanks(grown.plan, r.size);
      assert.ok(back.ok);
      assert.deepEqual(back.plan.ranks, placement.ranks);
      assert.deepEqual(claims(back.plan), claims(placement));
    }),
    { numRuns: 2000 },
  );
  assert.ok(added > 50, `only ${added} runs added ranks`);
});

test("property: whichever group fails, all that were created are removed, the newest first", () => {
  fc.assert(
    fc.property(
      request,
      fc.nat({ max: 8 }),
      fc.boolean(),
      (r, at, mayExist) => {
        const placement = planned(r);
        if (!placement) return;
        const world = new Set<string>();
        const log: string[] = [];
        let rollout = startRollout(placement);
        for (let step = nextStep(rollout), n = 0; step; step = nextStep(rollout), n++) {
          if (step.do === "remove") {
            world.delete(step.name);
            log.push(step.name);
            rollout = stepDone(rollout);
          } else if (n === at) {
            if (mayExist) world.add(step.group.name);
            rollout = stepFailed(rollout, "full", mayExist);
          } else {
            world.add(step.group.name);
            rollout = stepDone(rollout);
          }
        }
        if (at >= r.size) {
          assert.deepEqual([rollout.status, world.size], ["created", r.size]);
        } else {
          assert.deepEqual([rollout.status, world.size, rollout.leftover.length], ["undone", 0, 0]);
          const newestFirst = [...log].sort((a, b) => Number(b.slice(8)) - Number(a.slice(8)));
          assert.deepEqual(log, newestFirst);
        }
      },
    ),
    RUNS,
  );
});

test("a group that cannot be removed is named, and the others are removed all the same", () => {
  const placement = planned({
    nodes: [{ id: "a", available: { GPU: 3, "node:10.0.0.1": 1 } }],
    deviceKey: "GPU",
    strategy: "strict",
    size: 3,
    localSize: 3,
    worldSize: 1,
    masterIp: "10.0.0.1",
  })!;
  let rollout = stepFailed(stepDone(stepDone(startRollout(placement))), "no room");
  assert.deepEqual(nextStep(rollout), { do: "remove", name: "dp_rank_1" });
  rollout = stepFailed(rollout, "connection refused");
  assert.deepEqual(nextStep(rollout), { do: "remove", name: "dp_rank_0" });
  rollout = stepDone(rollout);
  assert.equal(rollout.status, "undone");
  assert.equal(rollout.failure, "no room");
  assert.deepEqual(rollout.leftover, [{ name: "dp_rank_1", reason: "connection refused" }]);
});
