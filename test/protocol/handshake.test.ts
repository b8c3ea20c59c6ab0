import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeEngineHandshake,
  decodeHandshakeFrames,
  decodeIdentity,
  decodeInit,
  decodeScaleUpInit,
  encode,
  encodeEngineHandshake,
  encodeIdentity,
  encodeInit,
  encodeScaleUpInit,
  Float,
  parallelConfig,
  wireRank,
} from "../../src/protocol/mod.ts";
import type {
  Encodable,
  EngineAddresses,
  EngineHandshake,
  Init,
  Refusal,
} from "../../src/protocol/mod.ts";
import { hex, vector } from "./vectors.ts";

const HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const one: EngineAddresses = {
  inputs: ["ipc:///tmp/in0"],
  outputs: ["ipc:///tmp/out0"],
  coordinatorInput: null,
  coordinatorOutput: null,
  frontendStatsPublish: null,
};
const two: EngineAddresses = {
  inputs: ["tcp://10.0.0.1:5001", "tcp://10.0.0.1:5002"],
  outputs: ["tcp://10.0.0.1:6001", "tcp://10.0.0.1:6002"],
  coordinatorInput: "tcp://10.0.0.1:7001",
  coordinatorOutput: "tcp://10.0.0.1:7002",
  frontendStatsPublish: "ipc:///tmp/stats",
};
const startUp = {
  masterIp: "10.0.0.1",
  masterPort: 29550,
  masterPortList: [29551, 29552, 29553, 29554],
  size: 4,
};
const scaleUp = {
  masterIp: "10.0.0.1",
  masterPort: 31005,
  masterPortList: [31001, 31002, 31003, 31004],
  size: 3,
  coordStorePort: 45556,
};

const SAID: [string, EngineHandshake][] = [
  ["hello_local_true_headless_false", { type: "hello", local: true, headless: false }],
  ["hello_local_false_headless_false", { type: "hello", local: false, headless: false }],
  ["ready_0_12_local_dp1", {
    type: "ready",
    local: true,
    headless: false,
    numGpuBlocks: 1234,
    dpStatsAddress: null,
  }],
  ["ready_0_12_nil_blocks", {
    type: "ready",
    local: true,
    headless: false,
    numGpuBlocks: null,
    dpStatsAddress: null,
  }],
  ["ready_new", { type: "ready", local: true, headless: false, parallelConfigHash: HASH }],
  ["ready_new_elastic", {
    type: "ready",
    local: false,
    headless: false,
    parallelConfigHash: HASH,
    coordStorePort: 45555,
    numRedundantExperts: 32,
  }],
];

const ANSWERED: [string, Init][] = [
  ["init_0_12_no_coord_dp1", {
    addresses: one,
    parallelConfig: parallelConfig({
      masterIp: "127.0.0.1",
      masterPort: 29500,
      masterPortList: [],
      size: 1,
    }),
    parallelConfigHash: null,
  }],
  ["init_0_12_coord_hash", {
    addresses: two,
    parallelConfig: parallelConfig(startUp),
    parallelConfigHash: HASH,
  }],
  ["init_new_moe_coord", { addresses: two, parallelConfig: parallelConfig(startUp) }],
  ["init_new_dense", { addresses: one, parallelConfig: {} }],
  ["init_new_elastic", {
    addresses: two,
    parallelConfig: parallelConfig({ ...startUp, coordStorePort: 45555 }),
  }],
  ["scaleup_meta_flat", {
    addresses: two,
    parallelConfig: parallelConfig(scaleUp),
    numRedundantExperts: 64,
  }],
];

test("HELLO and READY of every generation: byte for byte, value for value", () => {
  for (const [name, message] of SAID) {
    assert.equal(hex(encodeEngineHandshake(message)), hex(vector(name)), name);
    assert.deepEqual(decodeEngineHandshake(vector(name)), { ok: true, value: message }, name);
  }
});

test("INIT of every generation: byte for byte, value for value", () => {
  for (const [name, init] of ANSWERED) {
    assert.equal(hex(encodeInit(init)), hex(vector(name)), name);
    assert.deepEqual(decodeInit(vector(name)), { ok: true, value: init }, name);
  }
});

test("the wrapped answer to a joining rank", () => {
  const wrapped = {
    engineMetadata: {
      addresses: two,
      parallelConfig: parallelConfig({ ...scaleUp, elasticEpMaxDpSize: 8 }),
    },
    numRedundantExperts: 64,
  };
  assert.equal(hex(encodeScaleUpInit(wrapped)), hex(vector("scaleup_meta_wrapped")));
  assert.deepEqual(decodeScaleUpInit(vector("scaleup_meta_wrapped")), { ok: true, value: wrapped });
});

test("identities are two bytes, little-endian", () => {
  assert.equal(hex(encodeIdentity(wireRank(256))), hex(vector("identity_rank_256")));
  assert.equal(hex(encodeIdentity(wireRank(300))), hex(vector("identity_rank_300")));
  for (const rank of [0, 1, 255, 256, 65535]) {
    assert.deepEqual(decodeIdentity(encodeIdentity(wireRank(rank))), { ok: true, value: rank });
  }
  const refusals = [new Uint8Array(0), Uint8Array.of(2), new Uint8Array(20)].map((identity) => {
    const answer = decodeIdentity(identity);
    return answer.ok ? "" : answer.refusal.text;
  });
  assert.deepEqual(refusals, [
    "identity: expected two bytes, got 0 bytes ()",
    "identity: expected two bytes, got 1 byte (02)",
    "identity: expected two bytes, got 20 bytes (0000000000000000...)",
  ]);
  assert.throws(() => wireRank(65536), RangeError);
  assert.throws(() => wireRank(1.5), RangeError);
});

const refusalOf = (payload: Encodable | Uint8Array): Refusal => {
  const answer = decodeEngineHandshake(payload instanceof Uint8Array ? payload : encode(payload));
  assert.equal(answer.ok, false, "not refused");
  return answer.ok ? undefined! : answer.refusal;
};

test("a malformed handshake message says what was wrong and where", () => {
  const ready = { status: "READY", local: true, headless: false };
  const cases: [Encodable, Partial<Refusal>][] = [
    [[1, 2], {
      code: "wrong-type",
      at: "",
      text: "handshake message: expected a map, got an array of 2",
    }],
    [{ local: true, headless: false }, {
      code: "missing",
      at: "status",
      text: "handshake message at status: expected text, got nothing",
    }],
    [{ status: "HELLO", headless: false }, { code: "missing", at: "local" }],
    [{ status: "HELLO", local: "yes", headless: false }, {
      code: "wrong-type",
      at: "local",
      text: 'handshake message at local: expected true or false, got the text "yes"',
    }],
    [{ status: "HELLO", local: true, headless: null }, { code: "wrong-type", at: "headless" }],
    [{ status: Uint8Array.of(1), local: true, headless: null }, { at: "status" }],
    [{ ...ready, num_gpu_blocks: "7" }, { code: "wrong-type", at: "num_gpu_blocks" }],
    [{ ...ready, num_gpu_blocks: new Float(7) }, {
      code: "wrong-type",
      got: "the float 7",
    }],
    [{ ...ready, num_gpu_blocks: -1 }, {
      code: "wrong-value",
      text: "handshake message at num_gpu_blocks: expected an integer from 0, got the integer -1",
    }],
    [{ ...ready, num_gpu_blocks: 2n ** 63n }, { code: "wrong-value" }],
    [{ ...ready, coord_store_port: 65536 }, {
      code: "wrong-value",
      expected: "an integer from 0 to 65535",
    }],
    [{ ...ready, parallel_config_hash: 5 }, { code: "wrong-type", at: "parallel_config_hash" }],
  ];
  for (const [message, expected] of cases) {
    const refusal = refusalOf(message);
    for (const [key, value] of Object.entries(expected)) {
      assert.equal(refusal[key as keyof Refusal], value);
    }
  }
  assert.equal(refusalOf(vector("ready_new").subarray(0, 50)).code, "malformed");
});

test("unknown members are ignored, 0 and 1 pass as flags, another status is told apart", () => {
  const read = (value: Encodable) => {
    const answer = decodeEngineHandshake(encode(value));
    return answer.ok ? answer.value : answer.refusal;
  };
  assert.deepEqual(read({ status: "HELLO", local: 1, headless: 0, more: { x: [1] } }), {
    type: "hello",
    local: true,
    headless: false,
  });
  assert.deepEqual(read({ status: "BYE", local: true, headless: false }), {
    type: "unknown-status",
    status: "BYE",
    local: true,
    headless: false,
  });
});

test("the ROUTER's message is identity and payload, nothing else", () => {
  const identity = encodeIdentity(wireRank(1));
  const hello = vector("hello_local_true_headless_false");
  assert.deepEqual(decodeHandshakeFrames([identity, hello]), {
    ok: true,
    value: { rank: 1, message: { type: "hello", local: true, headless: false } },
  });
  for (const frames of [[], [identity], [identity, new Uint8Array(0), hello]]) {
    const answer = decodeHandshakeFrames(frames);
    assert.ok(!answer.ok && answer.refusal.code === "wrong-frames");
  }
  const stranger = decodeHandshakeFrames([new Uint8Array(5), hello]);
  assert.ok(!stranger.ok && stranger.refusal.code === "wrong-identity");
});

test("an engine refuses an INIT that would kill a real one", () => {
  const init = {
    addresses: { inputs: ["a"], outputs: ["b"] },
    parallel_config: {} as { [key: string]: Encodable },
  };
  const at = (change: Encodable): string => {
    const answer = decodeInit(encode(change));
    return answer.ok ? "accepted" : `${answer.refusal.code} ${answer.refusal.at}`;
  };
  assert.equal(at(init), "accepted");
  assert.equal(at({ ...init, addresses: { inputs: ["a"] } }), "missing addresses.outputs");
  assert.equal(at({ addresses: init.addresses }), "missing parallel_config");
  assert.equal(at({ parallel_config: {} }), "missing addresses");
  assert.equal(
    at({ ...init, addresses: { inputs: [Uint8Array.of(97)], outputs: ["b"] } }),
    "wrong-type addresses.inputs[0]",
  );
  for (const value of [null, true, new Float(3), { a: 1 }]) {
    assert.equal(at({ ...init, parallel_config: { x: value } }), "wrong-type parallel_config.x");
  }
  assert.equal(
    at({ ...init, parallel_config: { list: [1, "x"] } }),
    "wrong-type parallel_config.list[1]",
  );
});
