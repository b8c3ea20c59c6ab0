import assert from "node:assert/strict";
import { test } from "node:test";
import {
  classifyUtilityOutput,
  COORDINATOR_READY,
  decodeCoordinatorFrames,
  decodeEngineOutputs,
  decodeFirstFrame,
  decodeFrontFrame,
  decodePublish,
  decodeReconfigureRequest,
  decodeStoreDecimal,
  decodeStoreEpoch,
  decodeStorePhase,
  decodeStoreText,
  decodeUtilityCall,
  encode,
  encodeAbort,
  encodeEngineOutputs,
  encodeFirstFrame,
  encodePublish,
  encodeReconfigureRequest,
  encodeScaleElasticEp,
  encodeStartDpWave,
  encodeStoreText,
  encodeUtilityCall,
  encodeWakeUp,
  engineStatus,
  KEEP_CURRENT_RANK,
  scalingNotification,
  SHUTDOWN_CURRENT_RANK,
  STORE_FLAG,
  SUBSCRIBE_ALL,
  UNSUBSCRIBE_ALL,
  utilities,
  utilityReply,
} from "../../src/protocol/mod.ts";
import type {
  Decoded,
  EngineFacts,
  OutputsToSend,
  ReconfigureRequest,
  UtilityCall,
} from "../../src/protocol/mod.ts";
import { decodeBackFrame } from "../../src/protocol/coordinator-bus.ts";
import { hex, vector, vectorNames } from "./vectors.ts";

const seen = new Set<string>();
/** The vector's bytes are what we write, and what we read of them is the value. */
function both<T>(name: string, written: Uint8Array, read: Decoded<T>, value: T): void {
  seen.add(name);
  assert.equal(hex(written), hex(vector(name)), name);
  assert.deepEqual(read, { ok: true, value }, name);
}

test("what an engine sends: outputs, statistics, waves, replies, notifications", () => {
  const cases: [string, OutputsToSend][] = [
    ["eco_stats_engine0", {
      engineIndex: 0,
      schedulerStats: {
        running: 1,
        waiting: 0,
        stepCounter: 0,
        currentWave: 0,
        kvCacheUsage: 0,
      },
    }],
    ["eco_wave_complete", { engineIndex: 0, waveComplete: 7 }],
    ["eco_wave_complete_0", { engineIndex: 0, waveComplete: 0 }],
    ["eco_empty", { engineIndex: 0 }],
    ["eco_utility_none", { engineIndex: 1, utilityOutput: utilityReply.of("5", null) }],
    ["eco_eep_shutdown_complete", {
      engineIndex: 3,
      utilityOutput: scalingNotification("SHUTDOWN_COMPLETE", 3),
    }],
    ["eco_eep_new_init_ready", {
      engineIndex: 2,
      utilityOutput: scalingNotification("NEW_CORE_ENGINES_INIT_READY", 2),
    }],
    ["eco_ft_status", {
      engineIndex: 1,
      utilityOutput: engineStatus({ id: 1, status: "unhealthy" }),
    }],
  ];
  const nothing = {
    type: "outputs",
    outputCount: 0,
    schedulerStats: null,
    utilityOutput: null,
    finishedRequests: null,
    waveComplete: null,
    startWave: null,
    auxFrames: 0,
  };
  for (const [name, message] of cases) {
    both(
      name,
      encodeEngineOutputs({ ...message, timestamp: 1234.5 }),
      decodeEngineOutputs([vector(name)]) as Decoded<unknown>,
      { ...nothing, ...message, timestamp: 1234.5 },
    );
  }
});

test("notifications are told from replies by their reserved ids", () => {
  const of = (name: string) => {
    const read = decodeEngineOutputs([vector(name)]);
    assert.ok(read.ok && read.value.type === "outputs" && read.value.utilityOutput !== null);
    const event = classifyUtilityOutput(read.value.utilityOutput);
    assert.ok(event.ok);
    return event.value;
  };
  assert.deepEqual(of("eco_utility_none"), {
    type: "reply",
    callId: "5",
    failure: null,
    result: { type: null, value: null },
  });
  assert.deepEqual(of("eco_eep_shutdown_complete"), {
    type: "scaling-notification",
    notification: "SHUTDOWN_COMPLETE",
    rank: 3,
  });
  assert.deepEqual(of("eco_ft_status"), {
    type: "engine-status",
    id: 1,
    status: "unhealthy",
    details: { id: 1, status: "unhealthy" },
  });
});

test("utility calls, with 64-bit ids as decimal text", () => {
  const cases: [string, UtilityCall][] = [
    ["utility_pause_keep", { clientIndex: 0, callId: "6", ...utilities.pauseScheduler("keep") }],
    ["utility_pause_wait", { clientIndex: 0, callId: "6", ...utilities.pauseScheduler("wait") }],
    ["utility_resume", { clientIndex: 0, callId: "7", ...utilities.resumeScheduler() }],
    ["utility_commit", { clientIndex: 0, callId: "8", ...utilities.commitPreparedElasticEp() }],
    ["utility_notify_old", {
      clientIndex: 0,
      callId: "10",
      ...utilities.handleNotification("NEW_CORE_ENGINES_INIT_READY"),
    }],
    ["utility_bigid", {
      clientIndex: 0,
      callId: "16402587876332016112",
      ...utilities.isSleeping(),
    }],
  ];
  for (const [name, call] of cases) {
    both(name, encodeUtilityCall(call), decodeUtilityCall(vector(name)), call);
  }
  seen.add("abort_request");
  assert.deepEqual(encodeAbort(["req-1", "req-2"]).map(hex), ["01", hex(vector("abort_request"))]);
});

test("the coordinator's bus: publishes of both widths, wake-ups, waves, raw frames", () => {
  both(
    "publish_stats_2col",
    encodePublish({
      counts: [{ waiting: 0, running: 3 }, { waiting: 1, running: 4 }],
      wave: 7,
      running: true,
    }),
    decodePublish([vector("publish_stats_2col")]),
    {
      type: "publish",
      counts: [{ waiting: 0, running: 3 }, { waiting: 1, running: 4 }],
      wave: 7,
      running: true,
    },
  );
  const wide = [
    { waiting: 0, running: 3, kvCacheUsage: 0.25 },
    { waiting: 1, running: 4, kvCacheUsage: 0.5 },
  ];
  both(
    "publish_stats_3col",
    encodePublish({ counts: wide, wave: 7, running: true }),
    decodePublish([vector("publish_stats_3col")]),
    { type: "publish", counts: wide, wave: 7, running: true },
  );
  both(
    "publish_wave_only",
    encodePublish({ counts: null, wave: 8, running: false }),
    decodePublish([vector("publish_wave_only")]),
    { type: "publish", counts: null, wave: 8, running: false },
  );
  const idle = [{ waiting: 0, running: 0 }, { waiting: 0, running: 0 }];
  both(
    "publish_idle",
    encodePublish({ counts: idle, wave: 0, running: false }),
    decodePublish([vector("publish_idle")]),
    { type: "publish", counts: idle, wave: 0, running: false },
  );
  both<unknown>(
    "first_req_to_coordinator_identity",
    encodeWakeUp({ exclude: 1, wave: 7 }, "identity"),
    decodeFrontFrame([vector("first_req_to_coordinator_identity")]),
    { type: "wake-up", exclude: 1, excludeAs: "identity", wave: 7 },
  );
  both<unknown>(
    "first_req_to_coordinator_int",
    encodeWakeUp({ exclude: 1, wave: 7 }),
    decodeFrontFrame([vector("first_req_to_coordinator_int")]),
    { type: "wake-up", exclude: 1, excludeAs: "index", wave: 7 },
  );
  const [type, wave] = encodeStartDpWave({ wave: 5, exclude: 2 });
  assert.equal(hex(type!), hex(vector("raw_type_start_dp_wave")));
  seen.add("raw_type_start_dp_wave");
  both<unknown>(
    "start_wave_excl",
    wave!,
    decodeCoordinatorFrames([vector("raw_type_start_dp_wave"), vector("start_wave_excl")]),
    { type: "start-dp-wave", wave: 5, exclude: 2, excludeAs: "index" },
  );
  both<unknown>(
    "raw_coordinator_ready",
    COORDINATOR_READY,
    decodeCoordinatorFrames([vector("raw_coordinator_ready")]),
    { type: "coordinator-ready" },
  );
  both<unknown>(
    "raw_subscribe_all",
    SUBSCRIBE_ALL,
    decodeBackFrame([vector("raw_subscribe_all")]),
    {
      type: "subscribe",
      topic: "",
    },
  );
  both<unknown>(
    "raw_unsubscribe_all",
    UNSUBSCRIBE_ALL,
    decodeBackFrame([vector("raw_unsubscribe_all")]),
    { type: "unsubscribe", topic: "" },
  );
  const scale = decodeFrontFrame([encodeScaleElasticEp(5)]);
  assert.deepEqual(scale, { ok: true, value: { type: "scale-elastic-ep", size: 5 } });
});

test("the first frame of an engine: empty, or its facts", () => {
  both<unknown>(
    "raw_old_input_hello",
    encodeFirstFrame({ type: "first-frame", facts: null }),
    decodeFirstFrame(vector("raw_old_input_hello")),
    { type: "first-frame", facts: null },
  );
  const facts: EngineFacts = {
    maxModelLen: 2048,
    numGpuBlocks: 1000,
    blockSize: 16,
    dpStatsAddress: "tcp://10.0.0.1:40001",
    dtype: "bfloat16",
    vllmVersion: "0.30.0",
    worldSize: 1,
    dataParallelSize: 2,
    tensorParallelSize: 1,
    pipelineParallelSize: 1,
    decodeContextParallelSize: 1,
    dataParallelRank: 1,
    maxNumSeqs: 256,
    maxNumBatchedTokens: 8192,
    instanceId: "inst-a",
    supportsLora: false,
    maxLoras: 0,
    mambaBlockSize: null,
    kvCacheSizeTokens: 16000,
    kvCacheMaxConcurrency: 7.8125,
    kvEventsConfig: null,
    weightTransferBackend: null,
    enableSleepMode: false,
    supportsDraftWeightUpdates: false,
    coordStorePort: 45555,
    coordinatorInputAddress: "tcp://10.0.0.1:7001",
    coordinatorOutputAddress: "tcp://10.0.0.1:7002",
  };
  both<unknown>(
    "ready_response_external_eep",
    encodeFirstFrame({ type: "first-frame", facts }),
    decodeFirstFrame(vector("ready_response_external_eep")),
    { type: "first-frame", facts },
  );
});

test("the reconfiguration request of three generations", () => {
  const seven: ReconfigureRequest = {
    newDataParallelSize: 3,
    newDataParallelRank: KEEP_CURRENT_RANK,
    newDataParallelRankLocal: KEEP_CURRENT_RANK,
    newDataParallelMasterIp: "10.0.0.1",
    newDataParallelMasterPort: 31005,
    newDataParallelMasterPortList: [31001, 31002, 31003, 31004],
    coordStorePort: 45556,
  };
  const cases: [string, ReconfigureRequest][] = [
    ["reconf_keep", seven],
    ["reconf_shutdown", { ...seven, newDataParallelRank: SHUTDOWN_CURRENT_RANK }],
    ["reconf_with_operation_id", { ...seven, operationId: "0123456789abcdef0123456789abcdef" }],
    ["reconf_0_12", {
      newDataParallelSize: 4,
      newDataParallelRank: -1,
      newDataParallelRankLocal: -1,
      newDataParallelMasterIp: "10.0.0.1",
      newDataParallelMasterPort: 29600,
    }],
  ];
  for (const [name, request] of cases) {
    both(
      name,
      encodeReconfigureRequest(request),
      decodeReconfigureRequest(vector(name)),
      request,
    );
  }
  const call = utilities.reinitializeDistributed(seven);
  assert.equal(hex(encode(call.args[0] as never)), hex(vector("reconf_keep")));
});

test("values in the stores", () => {
  both(
    "store_epoch",
    encodeStoreText("0123456789abcdef0123456789abcdef"),
    decodeStoreEpoch(vector("store_epoch")),
    "0123456789abcdef0123456789abcdef",
  );
  both("store_flag", STORE_FLAG, decodeStoreText(vector("store_flag")), "1");
  both(
    "store_num_redundant",
    encodeStoreText("64"),
    decodeStoreDecimal(vector("store_num_redundant")),
    64,
  );
  both(
    "store_phase",
    encodeStoreText("committing"),
    decodeStorePhase(vector("store_phase")),
    "committing",
  );
  const text = "Timed out waiting for external Elastic EP ranks to prepare.";
  both("store_error", encodeStoreText(text), decodeStoreText(vector("store_error")), text);
});

test("no vector is left out", () => {
  const elsewhere = new Set([
    // in handshake.test.ts
    ...vectorNames.filter((name) =>
      /^(hello|ready_0_12|ready_new|identity|init|scaleup)/.test(name)
    ),
    // stays inside a front-end process, so that nobody decodes it
    "first_req_inproc",
  ]);
  assert.deepEqual(vectorNames.filter((name) => !seen.has(name) && !elsewhere.has(name)), []);
});
