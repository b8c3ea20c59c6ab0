import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addFacts,
  classifyUtilityOutput,
  decodeCoordinatorFrames,
  decodeEngineOutputs,
  decodeEngineRequest,
  decodeFirstFrame,
  decodeFrontFrame,
  decodePublish,
  decodeReconfigureRequest,
  decodeRequestOutputs,
  decodeStoreDecimal,
  decodeStoreEpoch,
  decodeStorePhase,
  encode,
  encodeAdd,
  encodeEngineOutputs,
  encodeOwnRequest,
  encodeStoreText,
  encodeUtilityRequest,
  Float,
  foldEngineFacts,
  jsonToWire,
  utilities,
  utilityReply,
  wireToJson,
} from "../../src/protocol/mod.ts";
import type { Decoded, Encodable, Json } from "../../src/protocol/mod.ts";
import { readAll } from "../../src/protocol/msgpack-reader.ts";

const refused = <T>(answer: Decoded<T>): string => {
  assert.equal(answer.ok, false, "not refused");
  return answer.ok ? "" : answer.refusal.text;
};
const value = <T>(answer: Decoded<T>): T => {
  if (!answer.ok) assert.fail(answer.refusal.text);
  return answer.value;
};
const ascii = (text: string) => new TextEncoder().encode(text);

test("engine outputs: shorter arrays have defaults, longer ones are read as far as known", () => {
  const empty = value(decodeEngineOutputs([encode([])]));
  assert.deepEqual(empty, {
    type: "outputs",
    engineIndex: 0,
    outputCount: 0,
    schedulerStats: null,
    timestamp: 0,
    utilityOutput: null,
    finishedRequests: null,
    waveComplete: null,
    startWave: null,
    auxFrames: 0,
  });
  const long = encode([2, [], null, 1, null, ["a"], null, 4, { more: 1 }, "x"]);
  const read = value(decodeEngineOutputs([long, new Uint8Array(3)]));
  assert.ok(read.type === "outputs");
  assert.deepEqual([read.engineIndex, read.finishedRequests, read.startWave, read.auxFrames], [
    2,
    ["a"],
    4,
    1,
  ]);
  assert.deepEqual(value(decodeEngineOutputs([ascii("ENGINE_CORE_DEAD")])), {
    type: "engine-dead",
  });
});

test("statistics: five members are read, whatever stands between them, and nothing else has to make sense", () => {
  const stats = (members: { [key: string]: Encodable }) => {
    const read = decodeEngineOutputs([encode([3, [], members, 1])]);
    return read.ok && read.value.type === "outputs" ? read.value.schedulerStats : read;
  };
  const all = { running: 0, waiting: 0, stepCounter: 0, currentWave: 0, kvCacheUsage: 0 };
  assert.deepEqual(stats({}), all);
  assert.deepEqual(
    stats({
      num_running_req: 9,
      nested: { num_running_reqs: 8, list: [1, { x: new Float(2) }] },
      num_waiting_reqs: 70_000,
      x: Uint8Array.of(1),
      kv_cache_usage: 1,
      num_running_reqs: 2,
    }),
    { ...all, running: 2, waiting: 70_000, kvCacheUsage: 1 },
  );
  assert.equal(
    refused(decodeEngineOutputs([encode([0, [], 5])])),
    "engine outputs at scheduler_stats: expected a map, got the integer 5",
  );
  const cut = encode([0, [], { num_running_reqs: 1, more: "text" }]);
  assert.match(
    refused(decodeEngineOutputs([cut.subarray(0, cut.length - 2)])),
    /^engine outputs at byte/,
  );
});

test("engine outputs: what is wrong is said with its place", () => {
  const of = (...elements: Encodable[]) => refused(decodeEngineOutputs([encode(elements)]));
  assert.equal(refused(decodeEngineOutputs([])), "engine outputs: expected a main frame, got none");
  assert.equal(
    refused(decodeEngineOutputs([encode({})])),
    "engine outputs: expected an array, got a map of 0",
  );
  assert.equal(
    of(70000),
    "engine outputs at engine_index: expected an integer from 0 to 65535, got the integer 70000",
  );
  assert.equal(of(0, 5), "engine outputs at outputs: expected an array, got the integer 5");
  assert.equal(
    of(0, [], { num_running_reqs: new Float(1) }),
    "engine outputs at scheduler_stats.num_running_reqs: expected an integer, got the float 1",
  );
  assert.equal(
    of(0, [], null, "x"),
    'engine outputs at timestamp: expected a number, got the text "x"',
  );
  assert.equal(
    of(0, [], null, 1, ["id", null, null]),
    'engine outputs at utility_output.call_id: expected an integer, got the text "id"',
  );
  assert.equal(
    of(0, [], null, 1, null, null, -1),
    "engine outputs at wave_complete: expected an integer from 0, got the integer -1",
  );
  assert.equal(
    of(0, [], null, 1, null, null, null, 2n ** 64n - 1n),
    "engine outputs at start_wave: expected an integer from 0, got the integer 18446744073709551615",
  );
  assert.match(
    refused(decodeEngineOutputs([ascii("ENGINE_CORE_DEAD"), ascii("x")])),
    /^engine outputs at byte 1/,
  );
});

test("requests to an engine: opaque ADD, ABORT, UTILITY, and the type that would kill it", () => {
  const own = encodeOwnRequest({
    requestId: "r1",
    promptTokenIds: [1, 2, 3],
    arrivalTime: 12,
    dataParallelRank: null,
    clientIndex: 2,
    currentWave: 9,
  });
  assert.deepEqual(value(addFacts(own)), { requestId: "r1", clientIndex: 2, currentWave: 9 });
  assert.deepEqual(value(addFacts(encode(["r2"]))), {
    requestId: "r2",
    clientIndex: 0,
    currentWave: 0,
  });
  assert.match(refused(addFacts(encode([]))), /ADD at request_id: expected text, got nothing/);
  assert.match(refused(addFacts(encode("x"))), /ADD: expected an array/);
  assert.deepEqual(value(decodeEngineRequest(encodeAdd(own, [new Uint8Array(9)]))), {
    type: "add",
    auxFrames: 1,
  });
  const call = { clientIndex: 0, callId: "18446744073709551615", ...utilities.isSchedulerPaused() };
  assert.deepEqual(value(decodeEngineRequest(encodeUtilityRequest(call))), {
    type: "utility",
    ...call,
  });
  const bad = (type: number, main: Encodable) =>
    refused(decodeEngineRequest([Uint8Array.of(type), encode(main)]));
  assert.equal(bad(4, []), "request at type: expected 0 (ADD), 1 (ABORT) or 3 (UTILITY), got 4");
  assert.equal(bad(1, ["a", 1]), "request at [1]: expected text, got the integer 1");
  assert.equal(bad(3, [0, 1, "m"]), "UTILITY at args: expected an array, got nothing");
  assert.equal(bad(3, [0, 1, "m", [], 5]), "UTILITY: expected four elements, got 5");
  assert.equal(
    refused(decodeEngineRequest([Uint8Array.of(1)])),
    "request: expected a type and a main frame, got 1",
  );
});

test("the coordinator's bus: nothing that kills the original passes for a message", () => {
  const front = (message: Encodable) => refused(decodeFrontFrame([encode(message)]));
  assert.equal(front([1]), "front-end message: expected two elements, got 1");
  assert.equal(front([1, 2, 3]), "front-end message: expected two elements, got 3");
  assert.equal(
    front([null, "x"]),
    'front-end message at [1]: expected an integer, got the text "x"',
  );
  assert.equal(
    front(["SCALE_ELASTIC_EP", 0]),
    "front-end message at [1]: expected an integer from 1 to 65536, got the integer 0",
  );
  assert.equal(
    front(["SCALE_ELASTIC_EP", "3"]),
    'front-end message at [1]: expected an integer, got the text "3"',
  );
  assert.equal(
    front(["FIRST_REQ", 3]),
    'front-end message at exclude: expected an integer, got the text "FIRST_REQ"',
  );
  assert.equal(
    front([Uint8Array.of(1, 2, 3), 3]),
    "front-end message at exclude: expected two bytes, got 3 bytes",
  );
  assert.match(
    refused(decodeFrontFrame([ascii("GET / HTTP/1.1\r\n")])),
    /^front-end message at byte 1/,
  );
  assert.equal(
    refused(decodeFrontFrame([Uint8Array.of(1), Uint8Array.of(1)])),
    "front-end message: expected one frame, got 2",
  );
  assert.deepEqual(value(decodeFrontFrame([Uint8Array.of(1, 0x61, 0x62)])), {
    type: "subscribe",
    topic: "6162",
  });
  assert.equal(
    refused(decodeFrontFrame([new Uint8Array(65_536)])),
    "front-end message at topic: expected at most 64 bytes, got 65535 bytes",
  );
  assert.deepEqual(value(decodeFrontFrame([encode([null, 3])])), {
    type: "wake-up",
    exclude: null,
    excludeAs: "none",
    wave: 3,
  });
  assert.match(refused(decodePublish([encode([null, 1])])), /three elements/);
  assert.match(refused(decodePublish([encode([[[1]], 1, true])])), /counts\[0\].running/);
  assert.match(refused(decodePublish([encode([null, 1, 1])])), /engines_running/);
  assert.match(refused(decodeCoordinatorFrames([ascii("READ")])), /READY, or a type and a payload/);
  assert.match(
    refused(decodeCoordinatorFrames([Uint8Array.of(3), encode([1, null])])),
    /START_DP_WAVE/,
  );
});

test("first frames: members that decide something have a type, the others are taken as they are", () => {
  const facts = value(
    decodeFirstFrame(encode({ num_gpu_blocks: 5, max_loras: "many", other: [1] })),
  );
  assert.deepEqual(facts, { type: "first-frame", facts: { numGpuBlocks: 5, maxLoras: "many" } });
  assert.equal(
    refused(decodeFirstFrame(encode({ num_gpu_blocks: "5" }))),
    'first frame at num_gpu_blocks: expected an integer, got the text "5"',
  );
  assert.match(refused(decodeFirstFrame(encode([1]))), /expected a map/);
});

test("facts of several engines fold, and different addresses are refused instead of ignored", () => {
  const folded = value(foldEngineFacts([
    { maxModelLen: 4096, numGpuBlocks: 10, blockSize: 16, dpStatsAddress: null, coordStorePort: 0 },
    { maxModelLen: 2048, numGpuBlocks: 7, blockSize: 32, dpStatsAddress: "a", coordStorePort: 5 },
  ]));
  assert.deepEqual(folded, {
    maxModelLen: 2048,
    numGpuBlocks: 17,
    blockSize: 32,
    kvCacheSizeTokens: null,
    kvCacheMaxConcurrency: null,
    dpStatsAddress: "a",
    coordStorePort: 5,
    coordinatorInputAddress: null,
    coordinatorOutputAddress: null,
  });
  assert.equal(
    refused(foldEngineFacts([{ dpStatsAddress: "a" }, { dpStatsAddress: "b" }])),
    "first frames at dpStatsAddress: expected what the first engine said, a, got b",
  );
  assert.equal(value(foldEngineFacts([])).numGpuBlocks, null);
});

test("a reconfiguration request is a map with integers, of any generation", () => {
  assert.match(refused(decodeReconfigureRequest(encode([3]))), /expected a map, got an array of 1/);
  const base = {
    new_data_parallel_size: 3,
    new_data_parallel_rank: 0,
    new_data_parallel_rank_local: -1,
    new_data_parallel_master_ip: "h",
    new_data_parallel_master_port: 5,
  };
  assert.equal(
    value(decodeReconfigureRequest(encode({ ...base, extra: null }))).newDataParallelRank,
    0,
  );
  assert.match(
    refused(decodeReconfigureRequest(encode({ ...base, new_data_parallel_size: new Float(3) }))),
    /new_data_parallel_size: expected an integer, got the float 3/,
  );
  assert.match(
    refused(decodeReconfigureRequest(encode({ ...base, new_data_parallel_master_port: 70000 }))),
    /from 0 to 65535/,
  );
});

test("notifications that are not the wire's are refused", () => {
  const of = (callId: string, content: Json) =>
    classifyUtilityOutput(utilityReply.of(callId, content));
  assert.match(refused(of("-1", ["BYE", 1])), /scaling notification at type/);
  assert.match(refused(of("-1", ["SHUTDOWN_COMPLETE", 1.5])), /scaling notification at dp_rank/);
  assert.match(refused(of("-1", null)), /got nothing/);
  assert.match(refused(of("-2", [1])), /engine status: expected a map/);
  assert.match(refused(of("-2", { status: 7 })), /expected healthy, dead, unhealthy, got 7/);
  assert.deepEqual(value(of("-2", { id: "e", status: 1 })), {
    type: "engine-status",
    id: "e",
    status: "dead",
    details: { id: "e", status: 1 },
  });
});

test("stored values that are not what the key holds are refused", () => {
  assert.match(
    refused(decodeStoreEpoch(encodeStoreText("epoch"))),
    /32 hex characters, got "epoch"/,
  );
  assert.match(refused(decodeStorePhase(encodeStoreText("done"))), /got "done"/);
  assert.match(refused(decodeStoreDecimal(encodeStoreText("6 4"))), /decimal digits/);
  assert.match(refused(decodeStorePhase(Uint8Array.of(0xff))), /1 bytes that are not/);
});

test("outputs of requests, for a simulated front-end", () => {
  const main = encodeEngineOutputs({
    engineIndex: 1,
    outputs: [
      { requestId: "a", newTokenIds: [5, 6], finishReason: null },
      { requestId: "b", newTokenIds: [], finishReason: "stop" },
    ],
    finishedRequests: ["b"],
  });
  assert.deepEqual(value(decodeRequestOutputs(main)), [
    { requestId: "a", newTokenIds: [5, 6], finishReason: null },
    { requestId: "b", newTokenIds: [], finishReason: "stop" },
  ]);
  const read = value(decodeEngineOutputs([main]));
  assert.ok(read.type === "outputs" && read.outputCount === 2);
});

test("opaque values become JSON and come back without loss", () => {
  const cases: [string, Json][] = [
    ["c0", null],
    ["cfe3a1b2c4d5e611f0", { $int: "16402587876332016112" }],
    ["cb3ff0000000000000", { $float: 1 }],
    ["cb3ff8000000000000", 1.5],
    ["cb8000000000000000", { $float: "-0" }],
    ["cb7ff8000000000000", { $float: "NaN" }],
    ["cbfff0000000000000", { $float: "-Infinity" }],
    ["c4020a0b", { $bytes: "0a0b" }],
    ["d4030a", { $ext: 3, data: "0a" }],
    ["8101c3", { $map: [[1, true]] }],
    ["81a42461626301", { $map: [["$abc", 1]] }],
    ["82a16101a1629201a163", { a: 1, b: [1, "c"] }],
  ];
  for (const [bytes, json] of cases) {
    const wire = readAll(Uint8Array.from(bytes.match(/../g)!, (h) => Number.parseInt(h, 16)));
    assert.deepEqual(wireToJson(wire), json);
    assert.equal(
      [...encode(jsonToWire(json))].map((b) => b.toString(16).padStart(2, "0")).join(""),
      bytes,
    );
  }
  const wrongs: Json[] = [{ $nothing: 1 }, { $int: 5 }, { $bytes: "xyz" }, { $int: "1", more: 2 }];
  for (const wrong of wrongs) assert.throws(() => jsonToWire(wrong), TypeError);
});
