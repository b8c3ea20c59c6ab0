import assert from "node:assert/strict";
import { test } from "node:test";
import { BusDriver, type BusObservation } from "../../src/drivers/bus.ts";
import type { DriverPort } from "../../src/drivers/driver.ts";
import { LastWords } from "../../src/drivers/last-words.ts";
import { bindEngineBus } from "../../src/drivers/zmq/engine-bus.ts";
import { connectDealer, connectPush } from "../../src/drivers/zmq/sockets.ts";
import {
  decodeEngineRequest,
  encodeEngineOutputs,
  encodeFirstFrame,
  ENGINE_CORE_DEAD,
  scalingNotification,
  utilities,
  utilityReply,
  wireRank,
} from "../../src/protocol/mod.ts";
import { until } from "../until.ts";

/** A driver that holds one bus for ranks 0 to 2, with what it told its host. */
function driven() {
  const inputs: [string, { type: string; [key: string]: unknown }][] = [];
  const observed: BusObservation[] = [];
  const port: DriverPort = {
    fence: 1,
    input: (to, event) => void inputs.push([to, event]),
    outcome: () => assert.fail("a bus has no calls"),
    observe: (observation) => void observed.push(observation as BusObservation),
  };
  const bus = new BusDriver();
  bus.start(port);
  const resource = {
    type: "socket.bus",
    client: 0,
    ranks: [[0, 2]],
    input: "tcp://127.0.0.1:0",
    output: "tcp://127.0.0.1:0",
  } as const;
  bus.hold({ holder: "startup", key: "bus0", resource });
  const endpoints = async () => {
    await until(() => inputs.some(([, event]) => event.type === "bound"), "bound");
    return inputs.find(([, e]) => e.type === "bound")![1]["endpoints"] as {
      input: string;
      output: string;
    };
  };
  return { bus, inputs, observed, endpoints };
}

/** An engine that answers every utility with its rank, until it dies. */
function engine(at: { input: string; output: string }, rank: number) {
  const push = connectPush({ address: at.output, lingerMs: 1000 });
  const dealer = connectDealer({
    address: at.input,
    rank: wireRank(rank),
    onMessage: (frames) => {
      const request = decodeEngineRequest(frames);
      if (!request.ok || request.value.type !== "utility") return;
      const utilityOutput = utilityReply.of(request.value.callId, rank);
      void push.send([encodeEngineOutputs({ engineIndex: rank, utilityOutput })]);
    },
  });
  const facts = { numGpuBlocks: 100 + rank };
  void dealer.send([encodeFirstFrame({ type: "first-frame", facts })]);
  return {
    push,
    close: () => [dealer, push].forEach((socket) => socket.close()),
    die: async () => {
      await push.send([ENGINE_CORE_DEAD]);
      dealer.close();
      push.close();
    },
  };
}

test("first frames are inputs of their ranks, utilities are answered, notifications are heard", async () => {
  const { bus, inputs, observed, endpoints } = driven();
  const heard: string[] = [];
  bus.onNotification((rank, notification) => heard.push(`${rank} ${notification}`));
  const at = await endpoints();
  const engines = [0, 2].map((rank) => engine(at, rank));
  await until(() => inputs.length === 3, "two first frames");
  assert.deepEqual(inputs.slice(1).sort(), [
    ["rank/0/engine", { type: "firstFrame", blocks: 100 }],
    ["rank/2/engine", { type: "firstFrame", blocks: 102 }],
  ]);
  assert.deepEqual(observed.map((o) => o.type), ["engine-facts", "engine-facts"]);
  assert.deepEqual(await bus.call(2, utilities.isSchedulerPaused(), "17.0"), {
    ok: true,
    value: 2,
  });
  const utilityOutput = scalingNotification("SHUTDOWN_COMPLETE", 2);
  await engines[1]!.push.send([encodeEngineOutputs({ engineIndex: 2, utilityOutput })]);
  await until(() => heard.length === 1, "the notification");
  assert.deepEqual(heard, ["2 SHUTDOWN_COMPLETE"]);
  const late = await bus.callWithin(1, utilities.isSchedulerPaused(), "17.1", 60);
  assert.equal(late.type, "late");
  for (const e of engines) e.close();
  await bus.close();
});

test("ENGINE_CORE_DEAD names nobody: whoever cannot be reached any more is lost as if its process were seen to end", async () => {
  const { bus, inputs, observed, endpoints } = driven();
  const at = await endpoints();
  const engines = [0, 1, 2].map((rank) => engine(at, rank));
  await until(() => inputs.length === 4, "three first frames");
  await engines[1]!.die();
  await until(() => inputs.length === 5, "who it was");
  assert.deepEqual(inputs[4], ["rank/1/engine", { type: "exited", code: null, signal: null }]);
  assert.equal(observed.at(-1)?.type, "engine-dying");
  for (const i of [0, 2]) engines[i]!.close();
  await bus.close();
});

test("last words of an engine that goes on living, and of one that is silent, lose nobody", async () => {
  const gone: number[] = [];
  const bus = await bindEngineBus({
    input: "tcp://127.0.0.1:0",
    output: "tcp://127.0.0.1:0",
    clientIndex: 0,
    expects: () => true,
    onFirstFrame: () => {},
    onNotification: () => {},
    onEngineDead: () => {},
    onMalformed: () => {},
    onStrangers: () => {},
  });
  const alive = engine(bus.endpoints, 0);
  const silent = connectDealer({ address: bus.endpoints.input, rank: wireRank(1) });
  await silent.send([new Uint8Array(0)]);
  const words = new LastWords({
    bus,
    ranks: () => [wireRank(0), wireRank(1)],
    gone: (rank) => gone.push(rank),
    everyMs: 60,
    times: 3,
  });
  const first = await bus.call({
    rank: wireRank(0),
    callId: "1",
    utility: utilities.isSchedulerPaused(),
    deadlineMs: 10_000,
  });
  assert.equal(first.type, "replied");
  await words.heard();
  assert.deepEqual(gone, []);
  silent.close();
  await words.heard();
  assert.deepEqual(gone, [1]);
  alive.close();
  bus.close();
});
