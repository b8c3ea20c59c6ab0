import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  addUpstream,
  createUpstream,
  type Resources,
  type UpstreamAnswer,
} from "../../../src/planning/mod.ts";

interface Vector {
  id: string;
  fn: string;
  device_key?: string;
  nodes: (Resources & { node_ip?: string; node_id?: string })[];
  strategy: string;
  dp_size: number;
  dp_size_local: number;
  world_size: number;
  master_ip: string;
  all2all_backend: string;
  available: Record<string, Resources>;
  total: Record<string, Resources>;
  old_dp_size: number;
  new_dp_size: number;
  result?: { placement_groups: unknown; local_dp_ranks: number[] };
  error?: { type: string; message: string };
}
const VECTORS = (JSON.parse(readFileSync("test/data/placement.json", "utf8")) as Vector[])
  .filter((v) => v.fn !== "get_device_indices");

const replay = (v: Vector): UpstreamAnswer =>
  v.fn === "create_dp_placement_groups"
    ? createUpstream({
      nodes: v.nodes.map((res, i) => [`n${i}`, res as Resources] as const),
      deviceKey: v.device_key!,
      strategy: v.strategy,
      size: v.dp_size,
      localSize: v.dp_size_local,
      worldSize: v.world_size,
      masterIp: v.master_ip,
      all2allBackend: v.all2all_backend,
    })
    : addUpstream({
      nodes: v.nodes as { node_ip: string; node_id: string }[],
      available: v.available,
      total: v.total,
      deviceKey: "GPU",
      oldSize: v.old_dp_size,
      newSize: v.new_dp_size,
      worldSize: v.world_size,
      masterIp: v.master_ip,
    });

for (const v of VECTORS) {
  test(`compat upstream, recorded case ${v.id}`, () => {
    const answer = replay(v);
    if (v.error) assert.deepEqual(answer.error, v.error);
    else {
      assert.equal(answer.error, null);
      assert.deepEqual(
        { placement_groups: answer.groups, local_dp_ranks: answer.localRanks },
        v.result,
      );
    }
  });
}

const IPS = { A: "10.0.0.1", B: "10.0.0.2", C: "10.0.0.3", D: "10.0.0.4" };
type Name = keyof typeof IPS;

/** `A8,B4` as nodes; `A-` is a node without the device key. */
function nodes(text: string): (readonly [string, Resources])[] {
  return text.split(",").map((spec, i) => {
    const ip = IPS[spec[0] as Name];
    const gpu = spec.slice(1) === "-" ? {} as Resources : { GPU: Number(spec.slice(1)) };
    return [`n${i}`, { CPU: 64, [`node:${ip}`]: 1, ...gpu }] as const;
  });
}

/** `A,A,B / 0,1,0`: nodes of each rank's first bundle, and local ranks; or `Class: text`. */
function summary({ groups, localRanks, error }: UpstreamAnswer): string {
  if (error) return `${error.type}: ${error.message}`;
  const places = groups.map((g) => {
    const pin = Object.keys(g.bundles[0]!).find((k) => k.startsWith("node:"));
    return Object.entries(IPS).find(([, ip]) => `node:${ip}` === pin)?.[0] ?? "?";
  });
  return `${places.join(",")} / ${localRanks.join(",")}`;
}

/** The worked cases of section 8.1 that were not recorded: id, nodes, strategy, D L W, what comes out. */
const CREATED: [string, string, string, [number, number, number], string | RegExp][] = [
  ["P2", "B8,A8", "strict", [4, 2, 2], "A,A,B,B / 0,1,0,1"],
  ["P5", "A8,B4", "fill", [4, 2, 4], /^ValueError: .*only created 3 placement groups/],
  ["P6", "A4", "strict", [4, 3, 2], /^ValueError: .*allocate 3 DP ranks .*fit 2 DP ranks\.$/],
  ["P7", "A8,B8", "span", [1, 1, 16], "A / 0"],
  ["P10", "A8,B4", "span", [1, 1, 16], /^AssertionError: Nodes are not homogenous/],
  ["P11", "A8,B8", "span", [2, 1, 12], /^AssertionError: .*multiple/],
  ["P13", "A8,B8", "span", [1, 2, 16], /^AssertionError: data-parallel-size-local 2/],
  ["P16", "B8", "strict", [1, 1, 1], /^AssertionError: The DP master node \(ip: 10\.0\.0\.1\)/],
  ["P18", "A-,B8", "strict", [2, 0, 1], /^ValueError: .*only created 0 placement groups/],
  ["P19", "A-,B8", "fill", [3, 0, 2], "B,B,B / 0,1,2"],
  ["P22", "A8,B8,C8", "strict", [5, 2, 1], "A,A,B,B,C / 0,1,0,1,0"],
  [
    "P23",
    "A8,B8,C8",
    "fill",
    [5, 2, 1],
    "AssertionError: Created 13 DP placement groups, expected 5",
  ],
  [
    "P24",
    "A8,B8,C8",
    "strict",
    [2, 2, 1],
    "AssertionError: Created 6 DP placement groups, expected 2",
  ],
  ["P25", "A8,B8", "fill", [8, 2, 1], "A,A,B,B,B,B,B,B / 0,1,0,1,2,3,4,5"],
  ["P27", "A7.5", "strict", [3, 3, 2], "A,A,A / 0,1,2"],
  ["span, device-less master", "A-,B8,C8", "span", [1, 1, 16], /^ValueError: .*fit 0 DP ranks/],
  [
    "span, overshoot",
    "A8,B8,C8,D8",
    "span",
    [1, 1, 16],
    "AssertionError: Created 2 DP placement groups, expected 1",
  ],
  ["L above D", "A8", "strict", [2, 4, 1], "A,A / 0,1"],
];
for (const [id, cluster, strategy, [size, localSize, worldSize], expected] of CREATED) {
  test(`compat upstream, ${id}`, () => {
    const outcome = summary(createUpstream({
      nodes: nodes(cluster),
      deviceKey: "GPU",
      strategy,
      size,
      localSize,
      worldSize,
      masterIp: IPS.A,
      all2allBackend: "naive",
    }));
    if (typeof expected === "string") assert.equal(outcome, expected);
    else assert.match(outcome, expected);
  });
}

test("compat upstream, P7 spans two nodes: eight bundles on each and one for the CPU", () => {
  const { groups } = createUpstream({
    nodes: nodes("A8,B8"),
    deviceKey: "GPU",
    strategy: "span",
    size: 1,
    localSize: 1,
    worldSize: 16,
    masterIp: IPS.A,
    all2allBackend: "naive",
  });
  assert.equal(groups[0]?.strategy, "PACK");
  assert.deepEqual(groups[0]?.bundles, [
    ...Array(8).fill({ GPU: 1, "node:10.0.0.1": 0.001 }),
    ...Array(8).fill({ GPU: 1, "node:10.0.0.2": 0.001 }),
    { CPU: 1 },
  ]);
});

test("compat upstream, defect 2: an error leaves the groups that were created before it", () => {
  const answer = createUpstream({
    nodes: nodes("A8,B4"),
    deviceKey: "GPU",
    strategy: "fill",
    size: 4,
    localSize: 2,
    worldSize: 4,
    masterIp: IPS.A,
    all2allBackend: "naive",
  });
  assert.equal(answer.error?.type, "ValueError");
  assert.equal(answer.groups.length, 3);
});

/** The worked cases of section 8.2: `free/total` by node. */
const ADDED: [string, string, [number, number, number], string | RegExp][] = [
  ["A1", "A6/8", [2, 4, 1], "A,A / 2,3"],
  ["A2", "A0/4,B8/8", [2, 4, 2], "?,? / 0,1"],
  ["A4", "A2/8", [3, 8, 2], "A / 3"],
  ["A7", "A4/8,A4/8", [1, 2, 1], "AssertionError: There can only be one head node"],
  ["A8", "A8/8", [2, 2, 1], " / "],
  ["A9", "A8/8", [2, 1, 1], " / "],
  ["A12", "A3/8", [2, 3, 2], "A / 2"],
  ["no nodes", "", [1, 2, 1], "IndexError: list index out of range"],
];
for (const [id, cluster, [oldSize, newSize, worldSize], expected] of ADDED) {
  test(`compat upstream, add ${id}`, () => {
    const specs = cluster === "" ? [] : cluster.split(",").map((s, i) => ({
      node_id: `${s[0]}${i}`,
      node_ip: IPS[s[0] as Name],
      counts: s.slice(1).split("/").map(Number),
    }));
    const map = (i: 0 | 1) =>
      Object.fromEntries(specs.map((s) => [s.node_id, { GPU: s.counts[i]! }]));
    const outcome = summary(addUpstream({
      nodes: specs,
      available: map(0),
      total: map(1),
      deviceKey: "GPU",
      oldSize,
      newSize,
      worldSize,
      masterIp: IPS.A,
    }));
    assert.equal(outcome, expected);
  });
}

test("compat upstream, add: nodes after the last addition are not looked up", () => {
  const answer = addUpstream({
    nodes: [{ node_id: "h", node_ip: IPS.A }, { node_id: "gone", node_ip: IPS.B }],
    available: { h: { GPU: 4 } },
    total: { h: { GPU: 8 } },
    deviceKey: "GPU",
    oldSize: 4,
    newSize: 8,
    worldSize: 1,
    masterIp: IPS.A,
  });
  assert.deepEqual([answer.error, answer.localRanks], [null, [4, 5, 6, 7]]);
});
