import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Facts,
  parseDeployment,
  planOrThrow,
  type Preflight,
  preflight,
  type PreflightOptions,
  questionsOf,
  shellQuoted,
} from "../../src/planning/mod.ts";

const plan = (input: Record<string, unknown>, options: PreflightOptions = {}): Preflight =>
  preflight(planOrThrow(parseDeployment(input)), options);

const facts = (some: Partial<Facts>): Facts => ({
  interfaces: [],
  resolutions: {},
  ports: [],
  directories: [],
  devices: null,
  visible: null,
  vllm: "/usr/bin/vllm",
  ...some,
});
const codes = (p: Preflight): string[] =>
  p.findings.map((f) => `${f.level} ${f.code} ${f.node ?? "-"}`);
const commands = (p: Preflight): string[] => p.processes.map((x) => `${x.node}: ${x.shell}`);

const TWO_NODES = [
  { name: "head", address: "10.0.0.1", devices: 8 },
  { name: "b", address: "10.0.0.2", devices: 8 },
];
const EIGHT = { model: "m", dataParallelSize: 8, tensorParallelSize: 2, moe: true };

test("internal: the head's front-end and a headless node, their ranks, devices, ports and commands", () => {
  const p = plan({ ...EIGHT, nodes: TWO_NODES });
  assert.equal(p.ok, true);
  assert.equal(p.summary, "8 ranks of 2 GPUs on 2 nodes, internal load balancing");
  assert.deepEqual(
    p.processes.map((x) => [x.node, x.ranks, x.topology.role, x.devices?.map(String)]),
    [
      ["head", "0-3", "front-end", ["0,1", "2,3", "4,5", "6,7"]],
      ["b", "4-7", "engines", ["0,1", "2,3", "4,5", "6,7"]],
    ],
  );
  assert.deepEqual(p.processes[0]!.ports, [
    { host: "10.0.0.1", port: 29550, what: "handshake" },
    { host: "*", port: 8000, what: "http" },
  ]);
  assert.deepEqual(p.processes[1]!.ports, []);
  assert.deepEqual(commands(p), [
    "head: VLLM_HOST_IP=10.0.0.1 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 vllm serve m " +
    "--data-parallel-size 8 --data-parallel-size-local 4 --data-parallel-address 10.0.0.1 " +
    "--tensor-parallel-size 2",
    "b: VLLM_HOST_IP=10.0.0.2 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 vllm serve m " +
    "--data-parallel-size 8 --data-parallel-size-local 4 --data-parallel-start-rank 4 " +
    "--data-parallel-address 10.0.0.1 --headless --tensor-parallel-size 2",
  ]);
});

test("Muster as the front-end: it has no rank of its own, and the engines of its host are headless beside it", () => {
  const p = plan({ ...EIGHT, nodes: TWO_NODES }, { program: "muster" });
  assert.equal(p.ok, true);
  assert.deepEqual(commands(p), [
    "head: muster serve --model m --data-parallel-size 8 --data-parallel-size-local 0 " +
    "--data-parallel-address 10.0.0.1 --data-parallel-master-ip 10.0.0.1 --host-ip 10.0.0.1 " +
    "--tensor-parallel-size 2 --moe",
    "head: VLLM_HOST_IP=10.0.0.1 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 vllm serve m " +
    "--data-parallel-size 8 --data-parallel-size-local 4 --data-parallel-address 10.0.0.1 " +
    "--headless --tensor-parallel-size 2",
    "b: VLLM_HOST_IP=10.0.0.2 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 vllm serve m " +
    "--data-parallel-size 8 --data-parallel-size-local 4 --data-parallel-start-rank 4 " +
    "--data-parallel-address 10.0.0.1 --headless --tensor-parallel-size 2",
  ]);
  const here = plan({ model: "m", dataParallelSize: 2, moe: true }, { program: "muster" });
  assert.deepEqual(commands(here), [
    "this host: muster serve --model m --data-parallel-size 2 --data-parallel-size-local 0 " +
    "--data-parallel-master-ip 127.0.0.1 --moe --allow-loopback",
    "this host: vllm serve m --data-parallel-size 2 --data-parallel-size-local 2 --headless",
  ]);
});

test("the derived mode of every node, and why", () => {
  const p = plan({ ...EIGHT, nodes: TWO_NODES, dataParallelHybridLb: true });
  assert.deepEqual(p.processes.map((x) => [x.node, x.topology.mode, x.topology.why[0]]), [
    [
      "head",
      "hybrid",
      "--data-parallel-hybrid-lb is set: each node's front-end balances over its own engines.",
    ],
    [
      "b",
      "hybrid",
      "--data-parallel-hybrid-lb is set: each node's front-end balances over its own engines.",
    ],
  ]);
  assert.deepEqual(p.processes.map((x) => x.topology.handshake?.bind.address), [
    "tcp://10.0.0.1:29550",
    "ipc:///tmp/muster-XXXXXX/r4-handshake",
  ]);
});

test("external: a server per rank, each with its own port and devices; rank 0's node is the head", () => {
  const nodes = [{ name: "idle", address: "10.0.0.1", devices: 1 }, TWO_NODES[1]!];
  const p = plan({ ...EIGHT, dataParallelSize: 2, nodes, dataParallelExternalLb: true }, {
    program: "vllm",
  });
  assert.deepEqual(codes(p), ["note node-without-ranks idle"]);
  assert.deepEqual(commands(p), [
    "b: VLLM_HOST_IP=10.0.0.2 CUDA_VISIBLE_DEVICES=0,1 vllm serve m --data-parallel-size 2 " +
    "--data-parallel-size-local 1 --data-parallel-rank 0 --data-parallel-external-lb " +
    "--data-parallel-address 10.0.0.2 --tensor-parallel-size 2",
    "b: VLLM_HOST_IP=10.0.0.2 CUDA_VISIBLE_DEVICES=2,3 vllm serve m --data-parallel-size 2 " +
    "--data-parallel-size-local 1 --data-parallel-rank 1 --data-parallel-external-lb " +
    "--data-parallel-address 10.0.0.2 --port 8001 --tensor-parallel-size 2",
  ]);
});

test("a supervisor per node when the servers have ports of their own", () => {
  const p = plan({ ...EIGHT, nodes: TWO_NODES, dataParallelMultiPortExternalLb: true });
  assert.deepEqual(p.processes.map((x) => [x.topology.role, x.topology.children.length]), [
    ["supervisor", 4],
    ["supervisor", 4],
  ]);
  assert.deepEqual(
    p.processes[1]!.ports.map((u) => u.port),
    [8000, 8001, 8002, 8003],
  );
});

test("a head without devices: the ranks meet where rank 0 runs", () => {
  const nodes = [{ name: "head", address: "10.0.0.1", devices: 0 }, ...TWO_NODES.slice(1)];
  const p = plan({ ...EIGHT, dataParallelSize: 4, nodes });
  assert.equal(p.ok, true);
  assert.deepEqual(codes(p), ["note node-without-ranks head"]);
  assert.equal(p.processes[0]!.topology.masterIp, "10.0.0.2");
});

test("Ray: one command, and the placement with its reasons", () => {
  const p = plan({
    ...EIGHT,
    dataParallelBackend: "ray",
    nodes: TWO_NODES,
    rayDpPackStrategy: "fill",
  }, {
    program: "vllm",
  });
  assert.equal(p.ok, true);
  assert.deepEqual(p.placement?.map((n) => [n.node, n.free, n.taken, n.why]), [
    ["head", 8, 8, "the master takes 4 ranks"],
    ["b", 8, 8, "as many as fit: 4 ranks"],
  ]);
  assert.deepEqual(commands(p), [
    "head: VLLM_RAY_DP_PACK_STRATEGY=fill VLLM_HOST_IP=10.0.0.1 vllm serve m --data-parallel-size 8 " +
    "--data-parallel-size-local 4 --data-parallel-backend ray --data-parallel-address 10.0.0.1 " +
    "--tensor-parallel-size 2",
  ]);
});

test("Ray: a refusal keeps the report of every node and the smallest change", () => {
  const nodes = [TWO_NODES[0]!, { name: "b", address: "10.0.0.2", devices: 2 }];
  const p = plan({ ...EIGHT, dataParallelBackend: "ray", nodes });
  assert.equal(p.ok, false);
  assert.deepEqual(p.findings.map((f) => f.fix), ["Add a node with 8 free devices."]);
  assert.equal(p.placement?.[1]?.why, "strict wants 4 ranks on a node, and 1 would fit");
});

test("one process without nodes is planned as it is", () => {
  const p = plan({ dataParallelSize: 2, dataParallelRank: 1, dataParallelAddress: "10.0.0.1" });
  assert.deepEqual(p.nodes, [{ name: "this host", address: null, here: true }]);
  assert.deepEqual(p.processes.map((x) => [x.topology.mode, x.ranks]), [["external", "1"]]);
});

test("ranks that do not add up, or are not known, are refused with the sum", () => {
  const two = (a: object, b: object) => [{ ...TWO_NODES[0], ...a }, { ...TWO_NODES[1], ...b }];
  const fix = (nodes: unknown) => plan({ ...EIGHT, nodes }).findings.map((f) => f.message);
  assert.deepEqual(fix(two({ devices: 4 }, {})), [
    "--data-parallel-size (8): the nodes run 6 ranks of 2 devices (head 2, b 4), and 8 are asked for.",
  ]);
  assert.deepEqual(fix(two({ ranks: 8 }, { ranks: 4 })), [
    "--data-parallel-size (8): the nodes run 12 ranks of 2 devices (head 8, b 4), and 8 are asked for.",
  ]);
  assert.deepEqual(fix(two({ devices: undefined }, {})), [
    "nodes head (unset): how many ranks this node runs is not known.",
  ]);
});

test("a node with more ranks than devices is refused, with how many would fit", () => {
  const nodes = [{ ...TWO_NODES[0], ranks: 4 }, { ...TWO_NODES[1], ranks: 4, devices: 3 }];
  const [finding] = plan({ ...EIGHT, nodes }).findings;
  assert.equal(finding?.message, "devices (3): 4 ranks of 2 devices need 8, and the node has 3.");
  assert.equal(finding?.fix, "Place 1 rank here, or make 8 devices visible.");
});

test("two external ranks on one host with the same devices are refused", () => {
  const nodes = [{ name: "a", address: "10.0.0.1", deviceMap: [["0", "1"], ["1", "2"]] }];
  const p = plan({ ...EIGHT, dataParallelSize: 2, nodes, dataParallelExternalLb: true });
  assert.deepEqual(codes(p), ["error devices-twice a"]);
});

test("two names of one host are one host: its ports and devices are not given twice", () => {
  const nodes = [
    { name: "a", address: "node-a", ranks: 2, devices: 2 },
    { name: "b", address: "10.0.0.1", ranks: 2, devices: 2 },
  ];
  const p = plan({ dataParallelSize: 4, dataParallelHybridLb: true, nodes }, {
    facts: facts({ resolutions: { "node-a": { addresses: ["10.0.0.1"] } } }),
  });
  assert.deepEqual(p.findings.map((f) => [f.code, f.message]), [
    ["port-twice", "port 8000 is wanted twice (http)."],
    ["devices-twice", "device 0 of 10.0.0.1 is given to rank 0 and rank 2, and 1 more."],
  ]);
});

test("one port for the handshake and the server is found", () => {
  const p = plan({ ...EIGHT, nodes: TWO_NODES, port: 29550 });
  assert.deepEqual(p.findings.map((f) => [f.code, f.node, f.message]), [
    ["port-twice", "head", "port 29550 is wanted twice (handshake and http)."],
  ]);
});

test("a port that somebody else has, or that this user may not have, is found on this host only", () => {
  const ports = [
    { host: "10.0.0.1", port: 29550, state: "in-use" as const },
    { host: "*", port: 80, state: "denied" as const },
  ];
  const input = { ...EIGHT, nodes: TWO_NODES, port: 80 };
  const here = plan(input, { facts: facts({ interfaces: ["10.0.0.1"], ports }) });
  assert.deepEqual(codes(here), ["error port-in-use head", "error port-denied head"]);
  assert.deepEqual(here.nodes.map((n) => n.here), [true, false]);
  const elsewhere = plan(input, { facts: facts({ interfaces: ["10.0.0.9"], ports }) });
  assert.deepEqual(codes(elsewhere), []);
});

test("names: none, several records, and a loopback record of /etc/hosts", () => {
  const nodes = [
    { name: "head", address: "node-1", devices: 8 },
    { name: "b", address: "node-2", devices: 8 },
  ];
  const p = plan({ ...EIGHT, nodes }, {
    facts: facts({
      resolutions: {
        "node-1": { addresses: ["127.0.1.1", "10.0.0.1"] },
        "node-2": { addresses: [], error: "ENOTFOUND" },
      },
    }),
  });
  assert.deepEqual(p.findings.map((f) => `${f.level} ${f.node}: ${f.message}`), [
    "error head: the name node-1 stands for 127.0.1.1 on this host (a line in /etc/hosts is the usual cause).",
    "error b: the name node-2 stands for nothing here (ENOTFOUND).",
    "warning head: the name node-1 stands for 2 addresses: 127.0.1.1, 10.0.0.1.",
  ]);
});

test("address families that do not meet", () => {
  const nodes = [TWO_NODES[0]!, { name: "b", address: "fd00::2", devices: 8 }];
  assert.deepEqual(codes(plan({ ...EIGHT, nodes })), ["warning address-families b"]);
  const six = [{ ...TWO_NODES[0], address: "fd00::1" }, nodes[1]];
  const p = plan({ ...EIGHT, nodes: six });
  assert.deepEqual(codes(p), []);
  assert.equal(p.processes[0]!.topology.handshake?.bind.address, "tcp://[fd00::1]:29550");
});

test("the lengths of socket paths: counted, and refused above 107 bytes", () => {
  const short = plan({ dataParallelSize: 2, rpcBasePath: "/run/m" });
  assert.equal(short.processes[0]!.ipcPathBytes, "/run/m/r0-handshake".length);
  const p = plan({ dataParallelSize: 2, rpcBasePath: `/${"d".repeat(100)}` });
  assert.deepEqual(codes(p), ["error ipc-path-too-long this host"]);
});

test("leftovers of an earlier run: sockets that nobody answers, and one that somebody does", () => {
  const p = plan({ dataParallelSize: 2, rpcBasePath: "/run/m" }, {
    facts: facts({
      directories: [{
        path: "/run/m",
        state: "writable",
        sockets: [
          { path: "/run/m/r0-in0", state: "stale" },
          { path: "/run/m/r0-handshake", state: "live" },
        ],
      }],
    }),
  });
  assert.deepEqual(p.findings.map((f) => `${f.level} ${f.code}: ${f.message}`), [
    "error earlier-run-alive: somebody answers on 1 of the sockets in /run/m (/run/m/r0-handshake).",
    "warning earlier-run-leftover: /run/m has 1 socket of an earlier run (/run/m/r0-in0).",
  ]);
});

test("a directory in which no socket can be made", () => {
  const p = plan({ dataParallelSize: 2, rpcBasePath: "/etc/passwd" }, {
    facts: facts({ directories: [{ path: "/etc/passwd", state: "not-a-directory", sockets: [] }] }),
  });
  assert.deepEqual(codes(p), ["error ipc-directory-unusable -"]);
});

test("this host's own devices are taken where the plan does not name any", () => {
  const p = plan({ dataParallelSize: 2 }, { facts: facts({ visible: "3,1" }) });
  assert.equal(
    p.processes[0]!.shell,
    "CUDA_VISIBLE_DEVICES=3,1 vllm serve MODEL --data-parallel-size 2",
  );
  const few = plan({ dataParallelSize: 2 }, { facts: facts({ devices: 1 }) });
  assert.deepEqual(codes(few), ["error devices-missing this host"]);
});

test("vllm that is not on the path of this host is a warning", () => {
  const p = plan({ dataParallelSize: 2, headless: true, dataParallelAddress: "10.0.0.1" }, {
    facts: facts({ vllm: null }),
  });
  assert.deepEqual(codes(p), ["warning vllm-missing this host"]);
});

test("what a plan asks of the world: names, ports, directories, the platform's variable", () => {
  const nodes = [{ name: "head", address: "node-1", ranks: 2, rpcBasePath: "/run/a" }, {
    name: "b",
    address: "10.0.0.2",
    ranks: 2,
  }];
  const deployment = planOrThrow(
    parseDeployment({ dataParallelSize: 4, nodes, platform: "tpu", rpcBasePath: "/run/m" }),
  );
  assert.deepEqual(questionsOf(deployment), {
    names: ["node-1"],
    ports: [{ host: "node-1", port: 29550 }, { host: "*", port: 8000 }],
    directories: ["/run/m", "/run/a"],
    variable: "TPU_VISIBLE_CHIPS",
  });
});

test("a deployment that is malformed says where", () => {
  const refusals = (input: unknown) => {
    const parsed = parseDeployment(input);
    return parsed.ok ? [] : parsed.refusals.map((r) => `${r.code} ${r.flag}`);
  };
  assert.deepEqual(refusals(null), ["invalid-value configuration"]);
  assert.deepEqual(refusals({ platform: "abacus" }), ["invalid-value platform"]);
  assert.deepEqual(refusals({ nodes: [{ name: "a", ranks: -1 }] }), ["invalid-value nodes a"]);
  assert.deepEqual(refusals({ nodes: [{ name: "a" }, { name: "a" }] }), ["invalid-value nodes"]);
  assert.deepEqual(
    refusals({ nodes: [{ name: "a", address: "10.0.0.1" }], dataParallelAddress: "10.0.0.9" }),
    ["address-unusable --data-parallel-address"],
  );
  const p = plan({ dataParallelRank: 0, nodes: [{ name: "a", ranks: 1 }] });
  assert.deepEqual(codes(p), ["error modes-exclude-each-other -"]);
});

test("the head is the node with the head's address, wherever it stands in the list", () => {
  const p = plan({
    ...EIGHT,
    nodes: [TWO_NODES[1], TWO_NODES[0]],
    dataParallelAddress: "10.0.0.1",
  });
  assert.deepEqual(p.processes.map((x) => x.node), ["head", "b"]);
});

test("words are quoted for the shell only where they must be", () => {
  assert.deepEqual(["a/b-c", "a b", "it's", ""].map(shellQuoted), [
    "a/b-c",
    "'a b'",
    "'it'\\''s'",
    "''",
  ]);
});
