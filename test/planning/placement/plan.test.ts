import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addRanks,
  groupOf,
  type NodeSnapshot,
  onMaster,
  type Placement,
  type PlacementAnswer,
  type PlacementRequest,
  planPlacement,
  remedyText,
  removeRanks,
  type Resources,
} from "../../../src/planning/mod.ts";

const IPS: Record<string, string> = {
  A: "10.0.0.1",
  B: "10.0.0.2",
  C: "10.0.0.3",
  D: "10.0.0.4",
  E: "10.0.0.5",
};

/** `A6/8`: node A, 6 of 8 devices free; `A-`: no device key at all. */
function nodes(text: string): NodeSnapshot[] {
  return text.split(",").filter(Boolean).map((spec) => {
    const name = spec[0]!;
    const [free, total] = spec.slice(1).split("/");
    const gpu = (n: string | undefined): Resources =>
      n === undefined || n === "-" ? {} : { GPU: Number(n) };
    return {
      id: name,
      available: { CPU: 64, [`node:${IPS[name]}`]: 1, ...gpu(free) },
      total: { CPU: 64, [`node:${IPS[name]}`]: 1, ...gpu(total ?? free) },
    };
  });
}

const request = (
  cluster: string,
  strategy: PlacementRequest["strategy"],
  [size, localSize, worldSize]: [number, number, number],
  more: Partial<PlacementRequest> = {},
): PlacementRequest => ({
  nodes: nodes(cluster),
  deviceKey: "GPU",
  strategy,
  size,
  localSize,
  worldSize,
  masterIp: IPS.A!,
  ...more,
});

/** `A0 A1 B0`: node and local rank of each rank; a spanning rank is `A+B0`. */
const places = (p: Placement): string =>
  p.ranks.map((r) => `${r.on.map((s) => s.node).join("+")}${r.localRank}`).join(" ");
const outcome = (answer: PlacementAnswer): string =>
  answer.ok
    ? places(answer.plan)
    : `${answer.refusals[0]!.code}: ${answer.refusals[0]!.remedies.map(remedyText).join(" ")}`;

function planned(answer: PlacementAnswer): Placement {
  assert.ok(answer.ok, JSON.stringify(answer));
  return answer.plan;
}

/** The original's cases, and what the default answers: the same where the original is right. */
const CASES: [string, string, PlacementRequest["strategy"], [number, number, number], string][] = [
  ["P1", "A8", "strict", [8, 8, 1], "A0 A1 A2 A3 A4 A5 A6 A7"],
  ["P2", "B8,A8", "strict", [4, 2, 2], "A0 A1 B0 B1"],
  ["P3", "A8,B4,C8", "strict", [4, 2, 4], "A0 A1 C0 C1"],
  ["P4", "A8,B4,C8", "fill", [4, 2, 4], "A0 A1 B0 C0"],
  ["P7", "A8,B8", "span", [1, 1, 16], "A+B0"],
  ["P8", "A8,B8,C8,D8", "span", [2, 1, 16], "A+B0 C+D0"],
  ["P22", "A8,B8,C8", "strict", [5, 2, 1], "A0 A1 B0 B1 C0"],
  ["P25", "A8,B8", "fill", [8, 2, 1], "A0 A1 B0 B1 B2 B3 B4 B5"],
  ["P27, half a device is none", "A7.5", "strict", [3, 3, 2], "A0 A1 A2"],
  ["P33", "A8,B8", "strict", [3, 2, 2], "A0 A1 B0"],
  ["P34", "A8,B8,C8", "span", [1, 1, 16], "A+B0"],
  [
    "defect 1, P23: fill stops when all are placed",
    "A8,B8,C8",
    "fill",
    [5, 2, 1],
    "A0 A1 B0 B1 B2",
  ],
  ["defect 1, P24: strict stops too", "A8,B8,C8", "strict", [2, 2, 1], "A0 A1"],
  ["defect 1, P32", "A8,B8", "strict", [1, 1, 1], "A0"],
  [
    "defect 1, span: nodes after the last rank stay free",
    "A8,B8,C8,D8",
    "span",
    [1, 1, 16],
    "A+B0",
  ],
  ["five nodes of 8, two ranks of 8", "A8,B8,C8,D8,E8", "strict", [2, 1, 8], "A0 B0"],
  ["defect 3, P18: no rank on the head", "A-,B8", "strict", [2, 0, 1], "B0 B1"],
  ["defect 3, P28", "A8,B8", "strict", [4, 0, 1], "B0 B1 B2 B3"],
  ["defect 3, P30", "A0,B8", "strict", [2, 0, 1], "B0 B1"],
  ["defect 3: one node can carry all", "A0,B8,C6", "strict", [8, 0, 1], "B0 B1 B2 B3 B4 B5 B6 B7"],
  ["P19", "A-,B8", "fill", [3, 0, 2], "B0 B1 B2"],
  ["a head without devices and two workers", "A0,B8,C8", "fill", [4, 0, 4], "B0 B1 C0 C1"],
  ["dust is a whole device", "A1.9999999999", "strict", [2, 2, 1], "A0 A1"],
  ["span passes over a node that is in use", "A8,B7/8,C8", "span", [1, 1, 16], "A+C0"],
];
for (const [name, cluster, strategy, sizes, expected] of CASES) {
  test(`placement, ${name}`, () => {
    assert.equal(outcome(planPlacement(request(cluster, strategy, sizes))), expected);
  });
}

test("shares are equal when one node cannot carry all", () => {
  assert.equal(
    outcome(planPlacement(request("A0,B5,C6", "strict", [8, 0, 1]))),
    "B0 B1 B2 B3 B4 C0 C1 C2",
  );
});

/** Refusals: what is wrong and everything that would help, the smallest change first. */
const REFUSED: [string, string, PlacementRequest["strategy"], [number, number, number], string][] =
  [
    [
      "P5: three of four fit",
      "A8,B4",
      "fill",
      [4, 2, 4],
      "devices-missing: Add a node with 8 free devices. " +
      "Give --data-parallel-size 3.",
    ],
    [
      "P6: the master fits two",
      "A4",
      "strict",
      [4, 3, 2],
      "devices-missing: Give --data-parallel-size-local 2 and add a node with 4 free devices. " +
      "Give --data-parallel-size-local 2 and give --data-parallel-size 2. " +
      "Give --data-parallel-size-local 1 and add 3 nodes with 4 free devices each. " +
      "Give --data-parallel-size-local 1 and give --data-parallel-size 1. " +
      "Give --data-parallel-size-local 0 and add 2 nodes with 4 free devices each.",
    ],
    [
      "P9: a rank fits on a node",
      "A8,B8",
      "span",
      [1, 1, 8],
      "strategy-wrong: Use the strategy strict. Use the strategy fill.",
    ],
    [
      "a node that is partly in use",
      "A8,B5/8",
      "fill",
      [4, 2, 4],
      "devices-missing: Free 3 more devices on 10.0.0.2. Add a node with 8 free devices. " +
      "Give --data-parallel-size 3.",
    ],
    ["P11: not a number of whole nodes", "A8,B8", "span", [2, 1, 12], "strategy-wrong: "],
    [
      "P12: two of four nodes",
      "A8,B8",
      "span",
      [2, 1, 16],
      "devices-missing: Add 2 nodes with 8 free devices each. Give --data-parallel-size 1.",
    ],
    [
      "P13: a rank per master",
      "A8,B8",
      "span",
      [1, 2, 16],
      "local-size-wrong: Give --data-parallel-size-local 1.",
    ],
    ["P16: no master", "B8", "strict", [1, 1, 1], "master-missing: "],
    ["P17: no nodes", "", "strict", [1, 1, 1], "master-missing: "],
    [
      "world 16 on nodes of 8 with strict",
      "A8,B8",
      "strict",
      [1, 1, 16],
      "devices-missing: Use the strategy span.",
    ],
    [
      "more local ranks than ranks",
      "A8",
      "strict",
      [2, 4, 1],
      "local-size-wrong: Give --data-parallel-size-local 2.",
    ],
  ];
for (const [name, cluster, strategy, sizes, expected] of REFUSED) {
  test(`no placement, ${name}`, () => {
    assert.equal(outcome(planPlacement(request(cluster, strategy, sizes))), expected);
  });
}

test("P14: fill with DeepEP kernels is refused, strict is proposed", () => {
  const answer = planPlacement(
    request("A8,B8", "fill", [2, 1, 8], { all2allBackend: "deepep_low_latency" }),
  );
  assert.equal(outcome(answer), "strategy-wrong: Use the strategy strict.");
});

test("defect 4: IPv6 addresses are whole, compared by value, and pinned as Ray names them", () => {
  const placement = planned(planPlacement(request("", "strict", [1, 1, 1], {
    nodes: [{ id: "h", available: { GPU: 8, "node:fd00::1": 1, "node:__internal_head__": 1 } }],
    masterIp: "FD00:0:0::1",
  })));
  assert.deepEqual(groupOf(placement, placement.ranks[0]!).bundles, [
    { GPU: 1, "node:fd00::1": 0.001 },
    { CPU: 1 },
  ]);
});

test("resources of placement groups are not addresses: such a node is one node", () => {
  const available = {
    "node:10.0.0.1": 1,
    "node:10.0.0.1_group_0_ab12": 1,
    "node:10.0.0.1_group_ab12": 1,
    "GPU_group_0_ab12": 4,
    GPU: 2,
  };
  const answer = planPlacement(
    request("", "strict", [2, 2, 1], { nodes: [{ id: "h", available }] }),
  );
  assert.equal(outcome(answer), "h0 h1");
});

test("nodes that are gone, unknown or ambiguous are passed over, and the report says why", () => {
  const answer = planPlacement(request("", "fill", [1, 1, 1], {
    nodes: [
      ...nodes("A1"),
      { id: "dead", alive: false, available: { GPU: 8, "node:10.0.0.2": 1 } },
      { id: "mute", ip: "10.0.0.3", available: null },
      { id: "bare", available: { GPU: 8 } },
      { id: "twin", available: { GPU: 8, "node:10.0.0.4": 1, "node:10.0.0.5": 1 } },
      { id: "cpu", available: { CPU: 8, "node:10.0.0.6": 1 } },
    ],
    size: 2,
  }));
  assert.ok(!answer.ok);
  assert.deepEqual(answer.refusals[0]!.nodes.map((n) => `${n.node}: ${n.why}`), [
    "A: the master takes 1 rank",
    "dead: it is not alive",
    "mute: its free resources are not known",
    "bare: it has no address (no node:<ip> resource)",
    "twin: it has 2 addresses (10.0.0.4, 10.0.0.5)",
    "cpu: it has no GPU",
  ]);
});

test("a plan says of every node what was free, what was taken, and why", () => {
  const { nodes: report } = planned(planPlacement(request("A8,B3/8,C8,D8", "strict", [5, 2, 2])));
  assert.deepEqual(report.map((n) => [n.node, n.free, n.taken, n.ranks.join(), n.why]), [
    ["A", 8, 4, "0,1", "the master takes 2 ranks"],
    ["B", 3, 0, "", "strict wants 2 ranks on a node, and 1 would fit"],
    ["C", 8, 4, "2,3", "its share of 2 ranks"],
    ["D", 8, 2, "4", "the last 1 rank of 5"],
  ]);
});

test("a refusal counts what is missing", () => {
  const answer = planPlacement(request("A8,B8", "strict", [1, 1, 16]));
  assert.ok(!answer.ok);
  assert.equal(
    answer.refusals[0]!.message,
    "the master 10.0.0.1 has 8 of 16 devices for its 1 rank; 0 ranks would fit.",
  );
});

const base = (cluster: string, sizes: [number, number, number]) =>
  planned(planPlacement(request(cluster, "fill", sizes)));

test("A3: additions continue the local ranks of this deployment, pinned to their nodes", () => {
  const added = planned(addRanks(base("A8", [3, 3, 2]), nodes("A2/8,B4"), IPS.A!, 6));
  assert.equal(places(added), "A0 A1 A2 A3 B0 B1");
  for (const rank of added.ranks) {
    const pin = `node:${rank.on[0]!.ip}`;
    for (const bundle of groupOf(added, rank).bundles.slice(0, 2)) assert.equal(bundle[pin], 0.001);
  }
});

test("A12: devices that others use do not shift local ranks", () => {
  const added = planned(addRanks(base("A8", [1, 1, 2]), nodes("A3/8"), IPS.A!, 2));
  assert.equal(places(added), "A0 A1");
});

test("defect 5, A5, A10, A11: no device key, nothing free, no entry are passed over", () => {
  const cluster: NodeSnapshot[] = [
    { id: "A", ip: IPS.A!, available: { CPU: 8 }, total: { CPU: 8, GPU: 2 } },
    { id: "w", ip: IPS.B!, available: null },
    { id: "c", ip: IPS.C!, available: { CPU: 8 } },
    ...nodes("D8"),
  ];
  const added = planned(addRanks(base("A2", [2, 2, 1]), cluster, IPS.A!, 3));
  assert.equal(places(added), "A0 A1 D0");
  assert.deepEqual(added.nodes.map((n) => n.why), [
    "a rank needs 1, and 0 of 2 are free",
    "its free resources are not known",
    "it has no GPU",
    "takes 1 rank more",
  ]);
});

test("defect 6, A4: a shortfall is a refusal that counts, not a shorter answer", () => {
  const answer = addRanks(base("A8", [3, 3, 2]), nodes("A2/8"), IPS.A!, 8);
  assert.ok(!answer.ok);
  assert.equal(
    answer.refusals[0]!.message,
    "1 of the 5 additional ranks of 2 GPU find a place.",
  );
  assert.equal(
    outcome(answer),
    "devices-missing: Add a node with 8 free devices. Give --data-parallel-size 4.",
  );
});

test("A6: additions need no head node among the candidates", () => {
  assert.equal(
    places(planned(addRanks(base("A1", [1, 1, 1]), nodes("B8"), IPS.A!, 2))),
    "A0 B0",
  );
});

test("additions to a spanning cluster take whole nodes", () => {
  const one = planned(planPlacement(request("A8,B8", "span", [1, 1, 16])));
  const two = planned(addRanks(one, nodes("A0/8,B0/8,C8,D8"), IPS.A!, 2));
  assert.equal(places(two), "A+B0 C+D0");
});

test("removing takes the highest ranks, and the same size changes nothing", () => {
  const four = base("A8,B8", [4, 2, 4]);
  assert.equal(places(planned(removeRanks(four, 3))), "A0 A1 B0");
  assert.equal(places(planned(removeRanks(four, 4))), places(four));
  assert.equal(outcome(removeRanks(four, 0)), "size-wrong: ");
  assert.equal(outcome(removeRanks(four, 5)), "size-wrong: ");
  assert.equal(outcome(addRanks(four, nodes("A8"), IPS.A!, 3)), "size-wrong: ");
  assert.equal(places(planned(addRanks(four, [], IPS.A!, 4))), places(four));
});

test("a rank is local when it runs on the master", () => {
  const four = base("A8,B8", [4, 2, 4]);
  assert.deepEqual(four.ranks.map((r) => onMaster(r, IPS.A!)), [true, true, false, false]);
});
