import assert from "node:assert/strict";
import { test } from "node:test";
import { Pulses } from "../../src/drivers/pulses.ts";
import type { Call, CallOutcome, EngineBus } from "../../src/drivers/zmq/engine-bus.ts";
import { wireRank } from "../../src/protocol/mod.ts";

/** A bus whose engine gives these answers, one after the other. */
function busThat(answers: readonly CallOutcome[]): { bus: EngineBus; calls: Call[] } {
  const calls: Call[] = [];
  const bus = {
    call: (call: Call) => {
      calls.push(call);
      return Promise.resolve(answers[calls.length - 1] ?? { type: "abandoned" });
    },
    abandon: () => {},
  } as unknown as EngineBus;
  return { bus, calls };
}

const replied: CallOutcome = { type: "replied", value: false };

test("a rank is asked until an answer stays away, and that is told once", async () => {
  const unknown: CallOutcome = { type: "failed", failure: "no attribute 'is_scheduler_paused'" };
  const late: CallOutcome = {
    type: "late",
    afterMs: 70,
    delivered: false,
    why: "rank 3 is not connected",
  };
  const { bus, calls } = busThat([replied, unknown, replied, late]);
  const told = await new Promise((resolve) => {
    const pulses = new Pulses({
      bus: () => Promise.resolve(bus),
      unresponsive: (holder, afterMs, why) => resolve([holder, afterMs, why]),
    });
    const holder = "rank/3/engine";
    const pulse = { holder, rank: wireRank(3), everyMs: 1, withinMs: 70 };
    pulses.watch(`${holder} heartbeat`, pulse);
  });
  assert.deepEqual(told, ["rank/3/engine", 70, "rank 3 is not connected"]);
  assert.deepEqual(calls.map((c) => [c.rank, c.utility.method, c.deadlineMs, c.callId]), [
    [3, "is_scheduler_paused", 70, "9223372036854775808"],
    [3, "is_scheduler_paused", 70, "9223372036854775809"],
    [3, "is_scheduler_paused", 70, "9223372036854775810"],
    [3, "is_scheduler_paused", 70, "9223372036854775811"],
  ]);
});

test("a rank that is no longer watched is asked no more", async () => {
  const { bus, calls } = busThat([replied, replied, replied]);
  const pulses = new Pulses({
    bus: () => Promise.resolve(bus),
    unresponsive: () => assert.fail("it answered"),
  });
  pulses.watch("a", { holder: "a", rank: wireRank(0), everyMs: 5, withinMs: 1000 });
  pulses.close();
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.deepEqual(calls, []);
});
