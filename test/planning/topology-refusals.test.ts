import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClusterConfigInput, parseClusterConfig } from "../../src/planning/config.ts";
import {
  planOrThrow,
  PlanRefused,
  type Refusal,
  REFUSALS,
  refusalText,
} from "../../src/planning/refusal.ts";
import { planTopology } from "../../src/planning/topology.ts";

function refusals(input: Record<string, unknown>): readonly Refusal[] {
  const config = parseClusterConfig({
    dataParallelAddress: "10.0.0.1",
    rpcBasePath: "/run/m",
    ...input,
  });
  if (!config.ok) return config.refusals;
  const planned = planTopology(config.plan);
  return planned.ok ? [] : planned.refusals;
}

/** Each row: what is asked for, and `code flag value` of every refusal. */
const ROWS: readonly [string, ClusterConfigInput, string[]][] = [
  ["offline with two local ranks", {
    dataParallelRankLocal: 0,
    dataParallelRank: 0,
    dataParallelSize: 4,
    dataParallelSizeLocal: 2,
  }, ["local-size-wrong --data-parallel-size-local 2"]],
  ["offline without a rank", { dataParallelRankLocal: 0, dataParallelSize: 4 }, [
    "rank-missing --data-parallel-rank unset",
  ]],
  ["offline and headless", { dataParallelRankLocal: 0, headless: true }, [
    "headless-wrong --headless true",
  ]],
  ["a rank and hybrid", {
    dataParallelRank: 1,
    dataParallelSize: 2,
    dataParallelHybridLb: true,
  }, ["modes-exclude-each-other --data-parallel-hybrid-lb true"]],
  ["a rank and a start rank", {
    dataParallelRank: 1,
    dataParallelSize: 2,
    dataParallelStartRank: 1,
  }, ["modes-exclude-each-other --data-parallel-start-rank 1"]],
  ["a rank and two local ranks", {
    dataParallelRank: 1,
    dataParallelSize: 4,
    dataParallelSizeLocal: 2,
  }, ["local-size-wrong --data-parallel-size-local 2"]],
  ["external without a rank", { dataParallelExternalLb: true, dataParallelSize: 2 }, [
    "rank-missing --data-parallel-rank unset",
  ]],
  ["external and headless", { dataParallelRank: 1, dataParallelSize: 2, headless: true }, [
    "headless-wrong --headless true",
  ]],
  ["hybrid and headless", {
    dataParallelHybridLb: true,
    dataParallelSize: 4,
    dataParallelSizeLocal: 2,
    headless: true,
  }, ["headless-wrong --headless true"]],
  ["hybrid without a local size", { dataParallelHybridLb: true, dataParallelSize: 4 }, [
    "local-size-missing --data-parallel-size-local unset",
  ]],
  ["hybrid without local engines", {
    dataParallelHybridLb: true,
    dataParallelSize: 4,
    dataParallelSizeLocal: 0,
  }, ["local-size-wrong --data-parallel-size-local 0"]],
  ["a start rank without a local size", { dataParallelStartRank: 2, dataParallelSize: 4 }, [
    "start-rank-ignored --data-parallel-start-rank 2",
  ]],
  ["headless without local engines", {
    headless: true,
    dataParallelSize: 2,
    dataParallelSizeLocal: 0,
  }, ["local-size-wrong --data-parallel-size-local 0"]],
  ["headless with API servers", { headless: true, apiServerCount: 2 }, [
    "headless-wrong --api-server-count 2",
  ]],
  ["rule 5: internal from a later rank", {
    dataParallelSize: 2,
    dataParallelSizeLocal: 2,
    dataParallelStartRank: 1,
  }, ["front-end-not-first --data-parallel-start-rank 1"]],
  ["more local ranks than ranks", { dataParallelSize: 2, dataParallelSizeLocal: 3 }, [
    "local-size-wrong --data-parallel-size-local 3",
  ]],
  ["a rank beyond the last", { dataParallelSize: 2, dataParallelRank: 2 }, [
    "rank-out-of-range --data-parallel-rank 2",
  ]],
  ["a node beyond the last rank", {
    dataParallelSize: 4,
    dataParallelSizeLocal: 2,
    dataParallelStartRank: 3,
    headless: true,
  }, ["rank-out-of-range --data-parallel-start-rank 3"]],
  ["Ray and a rank", { dataParallelBackend: "ray", dataParallelRank: 0 }, [
    "ray-wrong --data-parallel-rank 0",
  ]],
  ["Ray and headless", { dataParallelBackend: "ray", headless: true }, [
    "ray-wrong --headless true",
  ]],
  ["no API server on a front-end", { apiServerCount: 0 }, [
    "invalid-value --api-server-count 0",
  ]],
  ["elastic with everything against it", {
    enableElasticEp: true,
    pipelineParallelSize: 2,
    dataParallelSize: 4,
    elasticEpMaxDpSize: 2,
  }, [
    "elastic-wrong --enable-eplb false",
    "elastic-wrong --moe false",
    "elastic-wrong --pipeline-parallel-size 2",
    "elastic-wrong --elastic-ep-max-dp-size 2",
  ]],
  ["elastic and hybrid", {
    enableElasticEp: true,
    enableEplb: true,
    moe: true,
    dataParallelSize: 4,
    dataParallelSizeLocal: 2,
    dataParallelHybridLb: true,
  }, ["elastic-wrong --enable-elastic-ep true"]],
  ["elastic and external before the newest releases", {
    enableElasticEp: true,
    enableEplb: true,
    moe: true,
    dataParallelSize: 2,
    dataParallelRank: 0,
    generation: "mid",
  }, ["elastic-wrong --enable-elastic-ep true"]],
  ["a largest size without elastic", { elasticEpMaxDpSize: 4 }, [
    "elastic-wrong --elastic-ep-max-dp-size 4",
  ]],
  ["a loopback head with remote engines", {
    dataParallelSize: 2,
    dataParallelSizeLocal: 1,
    dataParallelAddress: "localhost",
  }, ["loopback-with-remote --data-parallel-address localhost"]],
  ["a loopback head seen from another node", {
    dataParallelSize: 2,
    dataParallelRank: 1,
    dataParallelAddress: "::ffff:127.0.0.1",
  }, ["loopback-with-remote --data-parallel-address ::ffff:127.0.0.1"]],
  ["a loopback head with Ray actors on other nodes", {
    dataParallelBackend: "ray",
    dataParallelSize: 2,
    dataParallelSizeLocal: 1,
    dataParallelAddress: "127.8.0.1",
  }, ["loopback-with-remote --data-parallel-address 127.8.0.1"]],
  ["a loopback meeting place with remote engines", {
    dataParallelSize: 2,
    dataParallelSizeLocal: 1,
    dataParallelMasterIp: "::1",
  }, ["loopback-with-remote --data-parallel-master-ip ::1"]],
  ["an address that nobody can dial", { dataParallelAddress: "0.0.0.0" }, [
    "address-unusable --data-parallel-address 0.0.0.0",
  ]],
  ["a URL as an address", { dataParallelAddress: "tcp://10.0.0.1" }, [
    "address-unusable --data-parallel-address tcp://10.0.0.1",
  ]],
  ["an address with five parts", { dataParallelAddress: "10.0.0.1.5" }, [
    "address-unusable --data-parallel-address 10.0.0.1.5",
  ]],
  ["rank 0 on an unknown host", { dataParallelSize: 2, dataParallelSizeLocal: 0, moe: true }, [
    "rank0-host-unknown --data-parallel-master-ip unset",
  ]],
  [
    "an unknown port to dial",
    { dataParallelSize: 2, dataParallelRank: 1, dataParallelRpcPort: 0 },
    [
      "invalid-value --data-parallel-rpc-port 0",
    ],
  ],
  ["a supervisor and a rank", { dataParallelMultiPortExternalLb: true, dataParallelRank: 0 }, [
    "modes-exclude-each-other --data-parallel-rank 0",
  ]],
  ["a supervisor beyond the last port", {
    dataParallelMultiPortExternalLb: true,
    dataParallelSize: 4,
    port: 65_533,
  }, ["invalid-value --port 65533"]],
];

for (const [name, input, expected] of ROWS) {
  test(`refused: ${name}`, () => {
    const found = refusals({ ...input });
    assert.deepEqual(found.map((r) => `${r.code} ${r.flag} ${r.value}`), expected);
    for (const r of found) {
      assert.ok(r.message.length > 10 && r.fix.length > 3, refusalText(r));
      assert.ok(REFUSALS[r.code]);
    }
  });
}

test("vLLM's own text is kept where it has one", () => {
  const [refusal] = refusals({ dataParallelHybridLb: true, dataParallelSize: 4 });
  assert.equal(
    refusal?.upstream,
    "data_parallel_size_local must be set to use data_parallel_hybrid_lb.",
  );
});

test("engines of this host may be reached at a loopback address when that is said", () => {
  const flags = {
    dataParallelSize: 2,
    dataParallelSizeLocal: 0,
    dataParallelAddress: "127.0.0.1",
    moe: true,
  };
  assert.notDeepEqual(refusals(flags), []);
  assert.deepEqual(
    refusals({ ...flags, allowLoopback: true, dataParallelMasterIp: "127.0.0.1" }),
    [],
  );
});

test("a unix socket path of 107 bytes is planned, one of 108 is refused with the room there is", () => {
  const directory = (bytes: number) => `/${"d".repeat(bytes - 1)}`;
  const longest = "/r0-handshake".length;
  assert.deepEqual(refusals({ rpcBasePath: directory(107 - longest) }), []);
  const [refusal] = refusals({ rpcBasePath: directory(108 - longest) });
  assert.equal(refusal?.code, "ipc-path-too-long");
  assert.match(refusal?.message ?? "", /a path of 108 bytes, and 107 are possible/);
  assert.equal(refusal?.fix, "Give a directory of 94 bytes or less.");
});

test("bytes of a unix socket path are counted, not characters", () => {
  assert.equal(refusals({ rpcBasePath: `/${"é".repeat(46)}` })[0], undefined);
  assert.equal(refusals({ rpcBasePath: `/${"é".repeat(47)}` })[0]?.code, "ipc-path-too-long");
});

test("a directory is asked for only where a unix socket is used", () => {
  const none = parseClusterConfig({ dataParallelSize: 2 });
  assert.ok(none.ok);
  const planned = planTopology(none.plan);
  assert.equal(planned.ok ? "" : planned.refusals[0]?.code, "ipc-directory-missing");
  const headless = parseClusterConfig({
    dataParallelSize: 2,
    headless: true,
    dataParallelAddress: "10.0.0.1",
  });
  assert.ok(headless.ok && planTopology(headless.plan).ok);
});

test("an unknown setting is refused with the nearest name, whatever its case", () => {
  for (const key of ["data-parallel-size", "dataParallelSiz", "data_parallel_size"]) {
    const [refusal] = refusals({ [key]: 4 });
    assert.deepEqual([refusal?.code, refusal?.flag, refusal?.value], ["unknown-setting", key, "4"]);
    assert.equal(refusal?.fix, "Did you mean dataParallelSize?");
  }
  assert.equal(refusals({ colour: "red" })[0]?.fix, "Remove it.");
});

test("a value of the wrong type or range names the flag, the value and the range", () => {
  const cases: [string, unknown, string][] = [
    ["dataParallelSize", 0, "--data-parallel-size (0): must be a whole number from 1 to 65536."],
    [
      "dataParallelSize",
      2.5,
      "--data-parallel-size (2.5): must be a whole number from 1 to 65536.",
    ],
    ["dataParallelSize", "4", "--data-parallel-size (4): must be a whole number from 1 to 65536."],
    ["headless", "yes", "--headless (yes): must be true or false."],
    ["generation", "0.9", "--generation (0.9): must be one of 0.12, mid, newest."],
    ["dataParallelAddress", "", "--data-parallel-address (): must not be empty."],
  ];
  for (const [key, value, text] of cases) {
    assert.equal(
      refusalText(refusals({ [key]: value })[0]!),
      `${text} Correct the value. [invalid-value]`,
    );
  }
  const none = parseClusterConfig(null);
  assert.equal(none.ok ? "" : none.refusals[0]?.message, "must be an object of settings.");
});

test("callers that throw get the first code and every reason", () => {
  assert.throws(
    () => planOrThrow(parseClusterConfig({ dataParallelSize: 0, headless: 1 })),
    (e: unknown) =>
      e instanceof PlanRefused && e.code === "invalid-value" && e.refusals.length === 2,
  );
});
