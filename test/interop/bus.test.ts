import assert from "node:assert/strict";
import { test } from "node:test";
import { bindEngineBus, type EngineBus } from "../../src/drivers/zmq/engine-bus.ts";
import { bindHandshakeRouter } from "../../src/drivers/zmq/handshake-router.ts";
import type { Strangers } from "../../src/drivers/zmq/strangers.ts";
import {
  decodeRequestOutputs,
  encodeAbort,
  encodeAdd,
  encodeOwnRequest,
  type Json,
  KEEP_CURRENT_RANK,
  type ReconfigureRequest,
  utilities,
  type Utility,
  wireRank,
} from "../../src/protocol/mod.ts";
import { Peer } from "./engine-peer.ts";

/** Real-encoder engines that have shaken hands with a front-end of our drivers. */
async function formedUp(
  size: number,
  flags: string,
  body: (front: {
    bus: EngineBus;
    peer: Peer;
    log: Json[];
    strangers: Strangers[];
    call: (utility: Utility, rank?: number, deadlineMs?: number) => ReturnType<EngineBus["call"]>;
  }) => Promise<void>,
): Promise<void> {
  const log: Json[] = [];
  const strangers: Strangers[] = [];
  const bus = await bindEngineBus({
    input: "tcp://127.0.0.1:0",
    output: "tcp://127.0.0.1:0",
    clientIndex: 0,
    expects: (rank) => rank < size,
    onFirstFrame: (rank, facts) => log.push(["first", rank, facts?.numGpuBlocks ?? null]),
    onNotification: (rank, said) =>
      log.push(["notified", rank, said.type === "engine-status" ? said.status : said.notification]),
    onEngineDead: () => log.push(["dead"]),
    onWave: (rank, wave) => log.push(["wave", rank, wave]),
    onStats: (rank, stats) => log.push(["stats", rank, stats.running, stats.waiting]),
    onOutputs: (_, frames) => {
      const outputs = decodeRequestOutputs(frames[0]!);
      log.push(["outputs", outputs.ok ? outputs.value as unknown as Json : outputs.refusal.text]);
    },
    onMalformed: (rank, refusal) => log.push(["malformed", rank, refusal.text]),
    onStrangers: (report) => strangers.push(report),
  });
  const addresses = {
    inputs: [bus.endpoints.input],
    outputs: [bus.endpoints.output],
    coordinatorInput: null,
    coordinatorOutput: null,
    frontendStatsPublish: null,
  };
  const handshake = await bindHandshakeRouter({
    address: "tcp://127.0.0.1:0",
    expects: (rank) => rank < size,
    onMessage: (rank, message) => {
      if (message.type === "hello") {
        void handshake.sendInit(rank, { addresses, parallelConfig: {} });
      }
    },
    onMalformed: (rank, refusal) => log.push(["malformed", rank, refusal.text]),
    onStrangers: (report) => strangers.push(report),
  });
  const peer = new Peer("engine.py", [
    ...["--ranks", `0-${size - 1}`, "--handshake", handshake.endpoint, "--local", "--blocks", "9"],
    ...flags.split(" ").filter((flag) => flag !== ""),
  ]);
  let calls = 2n ** 63n; // real clients use the upper half of 64 bits
  const call = (utility: Utility, rank = 0, deadlineMs = 20_000) =>
    bus.call({ rank: wireRank(rank), callId: String(calls++), utility, deadlineMs });
  try {
    await peer.until(
      "every first frame",
      () => log.filter((said) => (said as Json[])[0] === "first").length === size,
    );
    await body({ bus, peer, log, strangers, call });
    assert.deepEqual(peer.heard("error"), []);
  } finally {
    await peer.stop();
    handshake.close();
    bus.close();
  }
}

const replied = (value: Json) => ({ type: "replied", value });

test("utilities of a real-encoder engine: pause, resume, and failures in its own words", async () => {
  await formedUp(2, "--ignore sleep", async ({ call, log }) => {
    assert.deepEqual(log, [["first", 0, 9], ["first", 1, 9]]);
    const paused = () => call(utilities.isSchedulerPaused());
    assert.deepEqual(await paused(), replied(false));
    assert.deepEqual(await call(utilities.pauseScheduler("keep")), replied(null));
    assert.deepEqual(await paused(), replied(true));
    assert.deepEqual(await call(utilities.isSchedulerPaused(), 1), replied(false));
    assert.deepEqual(await call(utilities.resumeScheduler()), replied(null));
    assert.deepEqual(await paused(), replied(false));
    assert.deepEqual(await call(utilities.pauseScheduler("nope" as never)), {
      type: "failed",
      failure: "Call to pause_scheduler method failed: Invalid pause mode: nope",
    });
    assert.deepEqual(await call(utilities.isSleeping()), {
      type: "failed",
      failure:
        "Call to is_sleeping method failed: 'EngineCoreProc' object has no attribute 'is_sleeping'",
    });
    const late = await call(utilities.sleep(1, "wait"), 0, 150);
    assert.ok(late.type === "late" && late.delivered);
  });
});

test("a reconfiguration request is converted to the engine's own type, and its notification comes back", async () => {
  const request: ReconfigureRequest = {
    newDataParallelSize: 3,
    newDataParallelRank: KEEP_CURRENT_RANK,
    newDataParallelRankLocal: KEEP_CURRENT_RANK,
    newDataParallelMasterIp: "10.0.0.1",
    newDataParallelMasterPort: 31005,
    newDataParallelMasterPortList: [31001, 31002],
    coordStorePort: 45556,
    operationId: "op",
  };
  await formedUp(1, "", async ({ call, log, peer }) => {
    assert.deepEqual(
      await call(utilities.reinitializeDistributed(request)),
      replied("eep_ready/0"),
    );
    assert.deepEqual(await call(utilities.reinitializeDistributed(request)), {
      type: "failed",
      failure:
        "Call to reinitialize_distributed method failed: Elastic EP reconfiguration is already active",
    });
    assert.deepEqual(await call(utilities.commitPreparedElasticEp()), replied(null));
    const { coordStorePort: _, ...old } = request;
    const refused = await call(utilities.reinitializeDistributed(old));
    assert.ok(
      refused.type === "failed" &&
        /missing required field `coord_store_port`/.test(refused.failure),
    );
    await peer.until("the notification", () => log.length === 2);
    assert.deepEqual(log[1], ["notified", 0, "RECONFIGURE_FINISHED"]);
  });
});

test("fan-out to 16 engines at once: every reply finds its call", async () => {
  await formedUp(16, "--generation 0.12", async ({ call, log, bus }) => {
    assert.deepEqual(log[0], ["first", (log[0] as Json[])[1]!, null]);
    const ranks = Array.from({ length: 16 }, (_, rank) => rank);
    const paused = await Promise.all(
      ranks.map((rank) => call(utilities.pauseScheduler("keep"), rank)),
    );
    assert.deepEqual(paused, ranks.map(() => replied(null)));
    const asked = await Promise.all(ranks.map((rank) => call(utilities.isSchedulerPaused(), rank)));
    assert.deepEqual(asked, ranks.map(() => replied(true)));
    assert.equal(bus.openCalls, 0);
  });
});

test("a request of ours is served, another aborted; statistics and waves of an engine without a coordinator arrive", async () => {
  await formedUp(1, "--request-ms 50", async ({ bus, peer, log }) => {
    const add = (requestId: string, aux: Uint8Array[] = []) =>
      bus.send(
        wireRank(0),
        encodeAdd(
          encodeOwnRequest({
            requestId,
            promptTokenIds: [1, 2, 3],
            arrivalTime: 1.5,
            dataParallelRank: null,
            clientIndex: 0,
            currentWave: 2,
          }),
          aux,
        ),
      );
    assert.deepEqual(await add("r1", [new Uint8Array(300)]), { ok: true });
    assert.deepEqual(await add("r2"), { ok: true });
    assert.deepEqual(await bus.send(wireRank(0), encodeAbort(["r2"])), { ok: true });
    await peer.until(
      "the wave's end",
      () =>
        log.some((said) =>
          (said as Json[])[0] === "wave" && JSON.stringify(said).includes("waveComplete")
        ),
    );
    const outputs = log.filter((said) => (said as Json[])[0] === "outputs");
    assert.deepEqual(outputs, [
      ["outputs", [{ requestId: "r1", newTokenIds: [1, 2], finishReason: "stop" }]],
    ]);
    assert.deepEqual(peer.heard("add").map((said) => [said.id, said.wave, said.aux]), [
      ["r1", 2, 1],
      ["r2", 2, 0],
    ]);
    assert.deepEqual(log.filter((said) => (said as Json[])[0] === "wave"), [
      ["wave", 0, { startWave: 2 }],
      ["wave", 0, { waveComplete: 2 }],
    ]);
    assert.ok(log.some((said) => JSON.stringify(said) === '["stats",0,2,0]'));
  });
});

test("a dying engine, a status, doubled replies and garbage: told apart, and counted", async () => {
  await formedUp(1, "--replies 2", async ({ peer, log, strangers, call }) => {
    assert.deepEqual(await call(utilities.isSchedulerPaused()), replied(false));
    peer.tell({ do: "status", rank: 0, status: "unhealthy" });
    peer.tell({ do: "raw", rank: 0, to: "output", hex: "c1" });
    peer.tell({ do: "raw", rank: 0, to: "output", hex: "980990c0cb40934a0000000000c0c007c0" });
    peer.tell({ do: "dead", rank: 0 });
    await peer.until("the last words", () => log.some((said) => (said as Json[])[0] === "dead"));
    assert.deepEqual(log.slice(1), [["notified", 0, "unhealthy"], ["dead"]]);
    assert.deepEqual(strangers.map((s) => [s.kind, s.count]).sort(), [
      ["message", 1],
      ["rank", 1],
      ["reply", 1],
    ]);
  });
});
