import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClusterConfigInput, parseClusterConfig } from "../../src/planning/config.ts";
import { planOrThrow } from "../../src/planning/refusal.ts";
import { planTopology, type Topology } from "../../src/planning/topology.ts";

const HEAD = "10.0.0.1";

/** The plan of a configuration, with the head's address and a socket directory filled in. */
function plan(input: ClusterConfigInput): Topology {
  const config = planOrThrow(
    parseClusterConfig({ dataParallelAddress: HEAD, rpcBasePath: "/run/m", ...input }),
  );
  return planOrThrow(planTopology(config));
}

/** `rank:flags` of the engines to shake hands with: L or R, and H for headless. */
const awaited = (t: Topology): string =>
  (t.handshake?.engines ?? [])
    .map((e) => `${e.rank}:${e.local ? "L" : "R"}${e.headless ? "H" : ""}`).join(" ");

/** What the first engine of this node says, to whom: `address local/headless`. */
const says = (t: Topology): string[] =>
  (t.own[0]?.hellos ?? []).map((h) =>
    `${h.to.address} ${h.local ? "T" : "F"}/${h.headless ? "T" : "F"}`
  );
const clients = (t: Topology): string[] =>
  t.clients.flatMap((c) => [c.input.address, c.output.address]);
const coordinator = (t: Topology): string[] | null =>
  t.coordinator && [
    t.coordinator.frontPublish.address,
    t.coordinator.backPublish.address,
    t.coordinator.backOutput.address,
  ];

test("offline: one engine over ipc, never a coordinator", () => {
  const t = plan({ dataParallelSize: 4, dataParallelRank: 2, dataParallelRankLocal: 0, moe: true });
  assert.equal(t.mode, "offline");
  assert.equal(t.handshake?.bind.address, "ipc:///run/m/r2-handshake");
  assert.equal(awaited(t), "2:L");
  assert.deepEqual(says(t), ["ipc:///run/m/r2-handshake T/F"]);
  assert.deepEqual(clients(t), ["ipc:///run/m/r2-in0", "ipc:///run/m/r2-out0"]);
  assert.equal(t.coordinator, null);
});

test("internal on one node: every engine local, all over ipc, a coordinator from two ranks on", () => {
  const t = plan({ dataParallelSize: 4 });
  assert.equal(t.mode, "internal");
  assert.equal(t.handshake?.bind.address, "ipc:///run/m/r0-handshake");
  assert.equal(awaited(t), "0:L 1:L 2:L 3:L");
  assert.deepEqual(says(t), ["ipc:///run/m/r0-handshake T/F"]);
  assert.deepEqual(clients(t), ["ipc:///run/m/r0-in0", "ipc:///run/m/r0-out0"]);
  assert.deepEqual(coordinator(t), [
    "ipc:///run/m/r0-stats",
    "ipc:///run/m/r0-waves",
    "ipc:///run/m/r0-reports",
  ]);
  assert.equal(plan({ dataParallelSize: 1 }).coordinator, null);
});

test("internal over several nodes: the head binds tcp, its own engines are local, others headless", () => {
  const t = plan({ dataParallelSize: 4, dataParallelSizeLocal: 2 });
  assert.equal(t.handshake?.bind.address, "tcp://10.0.0.1:29550");
  assert.equal(awaited(t), "0:L 1:L 2:RH 3:RH");
  assert.deepEqual(says(t), ["tcp://10.0.0.1:29550 T/F"]);
  assert.deepEqual(clients(t), ["tcp://10.0.0.1:0", "tcp://10.0.0.1:0"]);
  assert.deepEqual(coordinator(t), [
    "ipc:///run/m/r0-stats",
    "tcp://10.0.0.1:0",
    "tcp://10.0.0.1:0",
  ]);
});

test("internal with no engine on the head: all are awaited remote and headless", () => {
  const t = plan({ dataParallelSize: 2, dataParallelSizeLocal: 0 });
  assert.equal(t.handshake?.bind.address, "tcp://10.0.0.1:29550");
  assert.equal(awaited(t), "0:RH 1:RH");
  assert.deepEqual(t.own, []);
  assert.deepEqual(clients(t), ["tcp://10.0.0.1:0", "tcp://10.0.0.1:0"]);
  assert.notEqual(t.coordinator, null);
});

test("a headless node: nothing is bound, its engines say F/T to the head", () => {
  const t = plan({
    dataParallelSize: 4,
    dataParallelSizeLocal: 2,
    dataParallelStartRank: 2,
    headless: true,
  });
  assert.equal(t.role, "engines");
  assert.equal(t.handshake, null);
  assert.deepEqual(t.clients, []);
  assert.equal(t.coordinator, null);
  assert.deepEqual(t.own.map((e) => [e.rank, e.localRank]), [[2, 0], [3, 1]]);
  assert.deepEqual(says(t), ["tcp://10.0.0.1:29550 F/T"]);
});

test("a headless node with every rank still dials the head over tcp", () => {
  const t = plan({ dataParallelSize: 2, headless: true });
  assert.deepEqual(says(t), ["tcp://10.0.0.1:29550 F/T"]);
});

test("hybrid on the first node: all ranks are awaited, the others neither local nor headless", () => {
  const t = plan({ dataParallelSize: 4, dataParallelSizeLocal: 2, dataParallelHybridLb: true });
  assert.equal(t.mode, "hybrid");
  assert.equal(t.handshake?.bind.address, "tcp://10.0.0.1:29550");
  assert.equal(awaited(t), "0:L 1:L 2:R 3:R");
  assert.deepEqual(says(t), ["tcp://10.0.0.1:29550 T/F"]);
  assert.deepEqual(clients(t), ["ipc:///run/m/r0-in0", "ipc:///run/m/r0-out0"]);
  assert.deepEqual(coordinator(t), ["tcp://10.0.0.1:0", "tcp://10.0.0.1:0", "tcp://10.0.0.1:0"]);
});

test("hybrid on a later node: its own ipc handshake, after one with the head", () => {
  const t = plan({ dataParallelSize: 4, dataParallelSizeLocal: 2, dataParallelStartRank: 2 });
  assert.equal(t.mode, "hybrid");
  assert.equal(t.handshake?.bind.address, "ipc:///run/m/r2-handshake");
  assert.equal(awaited(t), "2:L 3:L");
  assert.deepEqual(says(t), ["tcp://10.0.0.1:29550 F/F", "ipc:///run/m/r2-handshake T/F"]);
  assert.deepEqual(clients(t), ["ipc:///run/m/r2-in0", "ipc:///run/m/r2-out0"]);
  assert.equal(t.coordinator, null);
});

test("external, rank 0: all ranks are awaited, only rank 0 is local", () => {
  const t = plan({ dataParallelSize: 3, dataParallelRank: 0, moe: true });
  assert.equal(t.mode, "external");
  assert.equal(t.handshake?.bind.address, "tcp://10.0.0.1:29550");
  assert.equal(awaited(t), "0:L 1:R 2:R");
  assert.deepEqual(says(t), ["tcp://10.0.0.1:29550 T/F"]);
  assert.deepEqual(clients(t), ["ipc:///run/m/r0-in0", "ipc:///run/m/r0-out0"]);
  assert.deepEqual(coordinator(t), ["tcp://10.0.0.1:0", "tcp://10.0.0.1:0", "tcp://10.0.0.1:0"]);
});

test("external, a later rank: only itself, over its own ipc, after the head", () => {
  const t = plan({ dataParallelSize: 3, dataParallelRank: 2, moe: true });
  assert.equal(t.handshake?.bind.address, "ipc:///run/m/r2-handshake");
  assert.equal(awaited(t), "2:L");
  assert.deepEqual(says(t), ["tcp://10.0.0.1:29550 F/F", "ipc:///run/m/r2-handshake T/F"]);
  assert.deepEqual(clients(t), ["ipc:///run/m/r2-in0", "ipc:///run/m/r2-out0"]);
  assert.equal(t.coordinator, null);
});

test("Ray: no handshake at all; clients and coordinator as the sizes say", () => {
  const all = plan({ dataParallelSize: 4, dataParallelBackend: "ray" });
  assert.equal(all.handshake, null);
  assert.deepEqual(all.own, []);
  assert.deepEqual(clients(all), ["ipc:///run/m/r0-in0", "ipc:///run/m/r0-out0"]);
  assert.notEqual(all.coordinator, null);
  const some = plan({ dataParallelSize: 4, dataParallelSizeLocal: 2, dataParallelBackend: "ray" });
  assert.deepEqual(clients(some), ["tcp://10.0.0.1:0", "tcp://10.0.0.1:0"]);
});

test("Ray with the strategy span: the local size is one unless it is given", () => {
  const t = plan({ dataParallelSize: 2, dataParallelBackend: "ray", rayDpPackStrategy: "span" });
  assert.equal(t.localSize, 1);
});

test("rule 1: one input and one output address per API server", () => {
  const t = plan({ dataParallelSize: 2, apiServerCount: 3 });
  assert.deepEqual(clients(t), [
    ...["ipc:///run/m/r0-in0", "ipc:///run/m/r0-out0"],
    ...["ipc:///run/m/r0-in1", "ipc:///run/m/r0-out1"],
    ...["ipc:///run/m/r0-in2", "ipc:///run/m/r0-out2"],
  ]);
});

test("rule 2: external with one rank shakes hands over ipc", () => {
  const t = plan({ dataParallelSize: 1, dataParallelRank: 0 });
  assert.equal(t.mode, "external");
  assert.equal(t.handshake?.bind.transport, "ipc");
});

test("rule 4: behind an external load balancer only a mixture of experts has a coordinator", () => {
  assert.equal(plan({ dataParallelSize: 2, dataParallelRank: 0, moe: false }).coordinator, null);
  assert.notEqual(plan({ dataParallelSize: 2, dataParallelRank: 0, moe: true }).coordinator, null);
  const old = plan({ dataParallelSize: 2, dataParallelRank: 0, moe: false, generation: "0.12" });
  assert.notEqual(old.coordinator, null);
});

test("rule 4: waves are coordinated for a mixture of experts, and by 0.12 always", () => {
  assert.equal(plan({ dataParallelSize: 2 }).coordinator?.waves, false);
  assert.equal(plan({ dataParallelSize: 2, moe: true }).coordinator?.waves, true);
  assert.equal(plan({ dataParallelSize: 2, generation: "0.12" }).coordinator?.waves, true);
});

const ELASTIC = { enableElasticEp: true, enableEplb: true, moe: true } as const;

test("rule 8: elastic forces tcp for handshake, clients and the coordinator's back, not its front", () => {
  const t = plan({ ...ELASTIC, dataParallelSize: 2 });
  assert.equal(t.handshake?.bind.address, "tcp://10.0.0.1:29550");
  assert.equal(awaited(t), "0:L 1:L");
  assert.deepEqual(clients(t), ["tcp://10.0.0.1:0", "tcp://10.0.0.1:0"]);
  assert.deepEqual(coordinator(t), [
    "ipc:///run/m/r0-stats",
    "tcp://10.0.0.1:0",
    "tcp://10.0.0.1:0",
  ]);
});

test("elastic has one API server, and says so when more were asked for", () => {
  const t = plan({ ...ELASTIC, dataParallelSize: 2, apiServerCount: 4 });
  assert.equal(t.clients.length, 1);
  assert.deepEqual(t.notices.map((n) => n.code), ["one-api-server"]);
});

test("elastic: the largest size is the first one unless it is given", () => {
  assert.equal(plan({ ...ELASTIC, dataParallelSize: 2 }).maxSize, 2);
  assert.equal(plan({ ...ELASTIC, dataParallelSize: 2, elasticEpMaxDpSize: 8 }).maxSize, 8);
  assert.equal(plan({ dataParallelSize: 2 }).maxSize, 2);
});

test("elastic behind an external load balancer: a later rank binds an address of its own host", () => {
  const t = plan({ ...ELASTIC, dataParallelSize: 2, dataParallelRank: 1, hostIp: "10.0.0.2" });
  assert.equal(t.handshake?.bind.address, "ipc:///run/m/r1-handshake");
  assert.deepEqual(clients(t), ["tcp://10.0.0.2:0", "tcp://10.0.0.2:0"]);
});

test("rule 9: IPv6 hosts are bracketed, however they were typed", () => {
  for (const dataParallelAddress of ["fd00::1", "[fd00::1]"]) {
    const t = plan({ dataParallelSize: 2, dataParallelSizeLocal: 1, dataParallelAddress });
    assert.equal(t.handshake?.bind.address, "tcp://[fd00::1]:29550");
    assert.deepEqual(clients(t), ["tcp://[fd00::1]:0", "tcp://[fd00::1]:0"]);
  }
});

test("hybrid with one local engine is external, with all of them internal, and both say so", () => {
  const one = plan({
    dataParallelSize: 4,
    dataParallelSizeLocal: 1,
    dataParallelStartRank: 3,
  });
  assert.deepEqual([one.mode, one.firstRank], ["external", 3]);
  assert.deepEqual(one.notices.map((n) => n.code), ["hybrid-became-external"]);
  const all = plan({ dataParallelSize: 4, dataParallelSizeLocal: 4, dataParallelHybridLb: true });
  assert.equal(all.mode, "internal");
  assert.deepEqual(all.notices.map((n) => n.code), ["hybrid-became-internal"]);
});

test("a start rank makes a node hybrid, --headless makes it internal", () => {
  const flags = { dataParallelSize: 4, dataParallelSizeLocal: 2, dataParallelStartRank: 2 };
  assert.equal(plan(flags).mode, "hybrid");
  assert.equal(plan({ ...flags, headless: true }).mode, "internal");
});

test("INIT carries the data-parallel settings where the engines use them", () => {
  const carries = (input: ClusterConfigInput) =>
    plan({ dataParallelSize: 2, ...input }).initCarriesParallelConfig;
  assert.equal(carries({ generation: "0.12" }), true);
  assert.equal(carries({ moe: true }), true);
  assert.equal(carries({ moe: false }), false);
  assert.equal(carries({ moe: true, dataParallelSize: 1 }), false);
});

test("hashes are compared where the ranks form a group", () => {
  const compares = (input: ClusterConfigInput) =>
    plan({ dataParallelSize: 2, ...input }).comparesHashes;
  assert.equal(compares({ generation: "0.12" }), true);
  assert.equal(compares({ moe: true }), true);
  assert.equal(compares({}), false);
  assert.equal(compares({ generation: "0.12", dataParallelSize: 1 }), false);
});

test("a multi-port supervisor: one external rank per local rank at consecutive ports", () => {
  const t = plan({
    dataParallelSize: 4,
    dataParallelSizeLocal: 2,
    dataParallelStartRank: 2,
    dataParallelMultiPortExternalLb: true,
    port: 9000,
    moe: true,
  });
  assert.equal(t.role, "supervisor");
  assert.deepEqual(t.children.map((c) => [c.mode, c.firstRank, c.localSize, c.clients.length]), [
    ["external", 2, 1, 1],
    ["external", 3, 1, 1],
  ]);
  assert.deepEqual(t.children.map((c) => c.handshake?.bind.address), [
    "ipc:///run/m/r2-handshake",
    "ipc:///run/m/r3-handshake",
  ]);
});

test("the plan says why", () => {
  assert.deepEqual(plan({ dataParallelSize: 4, dataParallelSizeLocal: 2, moe: true }).why, [
    "No flag asks for another mode: one front-end balances over all engines.",
    "Handshake over tcp: engines of other nodes dial it.",
    "Requests and outputs over tcp: this front-end serves engines of other nodes too.",
    "A coordinator: there are 4 ranks and this is the front-end of rank 0; " +
    "it relays statistics and coordinates waves.",
  ]);
});

test("65,536 ranks are the most that an identity of two bytes can name", () => {
  const t = plan({ dataParallelSize: 65_536, dataParallelSizeLocal: 0 });
  assert.equal(t.handshake?.engines.length, 65_536);
  assert.equal(parseClusterConfig({ dataParallelSize: 65_537 }).ok, false);
});
