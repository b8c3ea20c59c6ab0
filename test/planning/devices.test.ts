import fc from "fast-check";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  type DeviceRequest,
  getDeviceIndices,
  overlaps,
  planDevices,
} from "../../src/planning/devices.ts";
import { PLATFORMS, setsVisibleDevices } from "../../src/planning/platform.ts";
import { refusalText } from "../../src/planning/refusal.ts";

interface DeviceCase {
  id: string;
  fn: string;
  env_var: string;
  local_dp_rank: number;
  world_size: number;
  local_world_size: number | null;
  visible_map: number[] | null;
  result?: string;
  error?: { message: string };
}
const CASES = (JSON.parse(readFileSync("test/data/placement.json", "utf8")) as DeviceCase[])
  .filter((c) => c.fn === "get_device_indices");

for (const c of CASES) {
  test(`get_device_indices ${c.id}, as the original answered`, () => {
    const answer = getDeviceIndices(
      c.env_var,
      c.local_dp_rank,
      c.world_size,
      c.local_world_size ?? undefined,
      c.visible_map?.map(String) ?? null,
    );
    assert.deepEqual(
      answer,
      c.error ? { ok: false, error: c.error.message } : { ok: true, value: c.result },
    );
  });
}

test("get_device_indices D3 and D4: half a rank on this node, and a shifted window", () => {
  const of = (...args: [number, number, number?, string[]?]) =>
    getDeviceIndices("CUDA_VISIBLE_DEVICES", ...args);
  assert.deepEqual(of(1, 8, 4), { ok: true, value: "8,9,10,11" });
  assert.deepEqual(of(1, 2, 2, ["4", "5", "6", "7"]), { ok: true, value: "6,7" });
});

const request = (r: Partial<DeviceRequest>): DeviceRequest => ({
  platform: PLATFORMS.cuda,
  localRanks: 2,
  worldSize: 1,
  count: null,
  ...r,
});
const answer = (r: Partial<DeviceRequest>): string[] => {
  const planned = planDevices(request(r));
  return planned.ok ? [...planned.plan.values] : planned.refusals.map(refusalText);
};
const codes = (r: Partial<DeviceRequest>): string[] => {
  const planned = planDevices(request(r));
  return planned.ok ? [] : planned.refusals.map((x) => x.code);
};

test("visible 0,1 with eight ranks is refused, never wrapped around", () => {
  assert.deepEqual(answer({ visible: "0,1", localRanks: 8 }), [
    "CUDA_VISIBLE_DEVICES (0,1): 8 ranks of one device need 8, and it names 2. " +
    "Place 2 ranks here, or make 8 devices visible. [devices-missing]",
  ]);
});

test("MIG and GPU ids stay the strings that they are", () => {
  const mig = ["MIG-GPU-8f1c/1/0", "MIG-7e2a-11"];
  assert.deepEqual(answer({ visible: mig.join(",") }), mig);
  assert.deepEqual(answer({ visible: "GPU-aa, GPU-bb" }), ["GPU-aa", "GPU-bb"]);
});

test("an empty variable means no device, and is refused", () => {
  assert.deepEqual(codes({ visible: "" }), ["devices-missing"]);
  assert.deepEqual(codes({ visible: " " }), ["devices-missing"]);
});

test("the order of the variable is kept", () => {
  assert.deepEqual(answer({ visible: "3,1" }), ["3", "1"]);
  assert.deepEqual(answer({ visible: "7,3,1,0", worldSize: 2 }), ["7,3", "1,0"]);
});

test("without the variable the devices are numbered, up to how many there are", () => {
  assert.deepEqual(answer({ worldSize: 2 }), ["0,1", "2,3"]);
  assert.deepEqual(answer({ worldSize: 2, count: 4 }), ["0,1", "2,3"]);
  assert.deepEqual(codes({ worldSize: 2, count: 3 }), ["devices-missing"]);
});

test("a list with a device twice, a hole, -1, a number beyond the last, or two naming schemes", () => {
  assert.deepEqual(codes({ visible: "0,0" }), ["devices-twice"]);
  assert.deepEqual(codes({ visible: "0,,1" }), ["devices-wrong"]);
  assert.deepEqual(codes({ visible: "0,-1" }), ["devices-wrong"]);
  assert.deepEqual(codes({ visible: "0,4", count: 4 }), ["devices-wrong"]);
  assert.deepEqual(codes({ visible: "0,GPU-aa" }), ["devices-mixed"]);
  assert.deepEqual(codes({ visible: "GPU-AA,MIG-GPU-aa/1/0" }), ["devices-twice"]);
});

test("an explicit map is taken as it is, or refused with the rank that is wrong", () => {
  assert.deepEqual(answer({ explicit: [["5"], ["2"]] }), ["5", "2"]);
  assert.deepEqual(codes({ explicit: [["5"]] }), ["devices-missing"]);
  assert.deepEqual(codes({ explicit: [["5"], ["5"]] }), ["devices-twice"]);
  assert.deepEqual(answer({ explicit: [["5", "6"], ["7"]] }), [
    "devices (5,6; 7): local rank 0 has 2 devices and needs 1. Name exactly 1. [devices-wrong]",
  ]);
});

test("two external ranks on one host with the same devices overlap; on two hosts they do not", () => {
  const claim = (who: string, host: string, ...ids: string[]) => ({ who, host, ids });
  assert.deepEqual(
    overlaps([
      claim("rank 0", "a", "0", "1"),
      claim("rank 1", "a", "1"),
      claim("rank 2", "b", "1"),
    ]),
    [{ host: "a", id: "1", who: ["rank 0", "rank 1"] }],
  );
});

test("the variable and Ray's key of each platform", () => {
  assert.deepEqual(
    Object.values(PLATFORMS).map((p) => `${p.name} ${p.visibleDevices} ${p.rayKey}`),
    [
      "cuda CUDA_VISIBLE_DEVICES GPU",
      "rocm CUDA_VISIBLE_DEVICES GPU",
      "xpu ZE_AFFINITY_MASK GPU",
      "hpu HABANA_VISIBLE_MODULES HPU",
      "tpu TPU_VISIBLE_CHIPS TPU",
      "neuron NEURON_RT_VISIBLE_CORES neuron_cores",
      "ascend ASCEND_RT_VISIBLE_DEVICES NPU",
      "musa MUSA_VISIBLE_DEVICES GPU",
      "cpu CPU_VISIBLE_MEMORY_NODES null",
    ],
  );
});

test("vLLM sets the variable with several ranks, off CUDA or under Ray", () => {
  assert.equal(setsVisibleDevices(PLATFORMS.cuda, 2, false), false);
  assert.equal(setsVisibleDevices(PLATFORMS.cuda, 2, true), true);
  assert.equal(setsVisibleDevices(PLATFORMS.tpu, 2, false), true);
  assert.equal(setsVisibleDevices(PLATFORMS.tpu, 1, true), false);
});

test("property: slices keep order, give each rank its number, and no device twice", () => {
  const ids = fc.uniqueArray(fc.nat({ max: 63 }).map(String), { maxLength: 32 });
  fc.assert(
    fc.property(ids, fc.nat({ max: 8 }), fc.integer({ min: 1, max: 8 }), (visible, n, w) => {
      const planned = planDevices(
        request({ visible: visible.join(","), localRanks: n, worldSize: w }),
      );
      assert.equal(planned.ok, n * w <= visible.length);
      if (!planned.ok) return;
      assert.deepEqual(planned.plan.ranks.flat(), visible.slice(0, n * w));
      assert.ok(planned.plan.ranks.every((r) => r.length === w));
      const upstream = planned.plan.ranks.map((_, r) => getDeviceIndices("X", r, w, w, visible));
      assert.deepEqual(upstream.map((u) => u.ok && u.value), planned.plan.values);
    }),
    { numRuns: 1000 },
  );
});
