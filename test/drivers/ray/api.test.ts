import assert from "node:assert/strict";
import { test } from "node:test";
import { type JobSpec, RayApi } from "../../../src/drivers/ray/api.ts";
import { RayError } from "../../../src/drivers/ray/error.ts";
import { parseUsage, snapshotOf } from "../../../src/drivers/ray/resources.ts";
import { FakeRay } from "./fake-ray.ts";

const spec = (more: Partial<JobSpec> = {}): JobSpec => ({
  id: "f-1",
  entrypoint: "true",
  node: "node0",
  ip: "10.0.0.1",
  resources: { GPU: 1, CPU: 1 },
  env: {},
  metadata: {},
  ...more,
});
const coded = (code: string, text: RegExp) => (error: unknown): boolean =>
  error instanceof RayError && error.code === code && text.test(error.message);

async function withRay(body: (ray: FakeRay, api: RayApi) => Promise<void>): Promise<void> {
  const ray = await FakeRay.open(4, 2);
  const api = new RayApi({ url: ray.url });
  try {
    await body(ray, api);
  } finally {
    api.http.close();
    await ray.close();
  }
}

test("a POST is not taken for a browser's, where fetch is", () =>
  withRay(async (ray, api) => {
    await api.submit(spec());
    const fetched = await fetch(`${ray.url}/api/jobs/`, {
      method: "POST",
      body: "{}",
      mode: "cors",
    });
    await fetched.text();
    // Deno's fetch does not say sec-fetch-mode; Node's always does.
    if (fetched.status !== 405) assert.equal("Deno" in globalThis, true);
    assert.equal((await api.job("f-1"))?.id, "f-1");
  }));

test("a job is pinned by its node's label, with its devices counted", () =>
  withRay(async (ray, api) => {
    await api.submit(spec({ resources: { GPU: 2, CPU: 1, my_kind: 1 } }));
    const { runtime_env: _, metadata: __, entrypoint: ___, ...sent } = ray.submitted[0]!;
    assert.deepEqual(sent, {
      submission_id: "f-1",
      entrypoint_num_gpus: 2,
      entrypoint_num_cpus: 1,
      entrypoint_resources: { my_kind: 1 },
      entrypoint_label_selector: { "ray.io/node-id": "node0" },
    });
  }));

test("a server too old for labels is pinned to by address, from then on", () =>
  withRay(async (ray, api) => {
    ray.old = true;
    await api.submit(spec());
    await api.submit(spec({ id: "f-2" }));
    assert.equal(ray.submitted.length, 3);
    assert.deepEqual(ray.submitted[2]!["entrypoint_resources"], { "node:10.0.0.1": 0.001 });
  }));

test("resources of a placement group, and ids that leave zombies, are refused before they are sent", () =>
  withRay(async (ray, api) => {
    await assert.rejects(
      api.submit(spec({ resources: { GPU_group_0_ab12: 1 } })),
      coded("ray-refused", /cannot ask for the resource GPU_group_0_ab12/),
    );
    await assert.rejects(api.submit(spec({ id: "a/b" })), coded("ray-refused", /a\/b is no id/));
    assert.equal(ray.submitted.length, 0);
  }));

test("errors are one sentence: of a traceback its last line", () =>
  withRay(async (_, api) => {
    await api.submit(spec());
    await assert.rejects(
      api.submit(spec()),
      coded(
        "ray-trouble",
        /^submitting f-1: ValueError: Job with submission_id f-1 already exists/,
      ),
    );
    assert.equal(await api.job("none"), null);
  }));

test("a token that is missing, wrong, right", () =>
  withRay(async (ray, api) => {
    ray.token = "secret";
    await assert.rejects(api.version(), coded("ray-unauthorised", /a token is wanted/));
    const wrong = new RayApi({ url: ray.url, token: "x" });
    await assert.rejects(wrong.version(), coded("ray-unauthorised", /the token is wrong/));
    const right = new RayApi({ url: ray.url, token: "secret" });
    assert.equal((await right.version()).ray, "2.58.0");
    wrong.http.close();
    right.http.close();
  }));

test("nobody answers: the request and the reason are named", async () => {
  const api = new RayApi({ url: "http://127.0.0.1:1" });
  await assert.rejects(
    api.http.post("/api/jobs/"),
    coded("ray-unreachable", /^POST http:\/\/127\.0\.0\.1:1\/api\/jobs\/: ECONNREFUSED/),
  );
  api.http.close();
});

test("the text of a node's resources: groups in brackets, fractions, dust, memory left out", () => {
  const usage = parseUsage(
    "0.0/2.0 CPU\n1.0/4.0 GPU (0.5 used of 2.0 reserved in placement groups)\n" +
      "0.0/1.0 accelerator_type:H200\n0B/22.47GiB memory\n0.0010000000000000009/1.0 my_Custom\n1e-05/3.0 tiny",
  );
  assert.deepEqual([...usage.values()].map((u) => [u.name, u.used, u.total, u.reserved]), [
    ["CPU", 0, 2, 0],
    ["GPU", 1, 4, 1.5],
    ["accelerator_type:H200", 0, 1, 0],
    ["my_Custom", 0.0010000000000000009, 1, 0],
    ["tiny", 0.00001, 3, 0],
  ]);
});

const row = (id: string, gpu: number, state = "ALIVE") => ({
  node_id: id,
  node_ip: `ip-${id}`,
  is_head_node: false,
  state,
  resources_total: { GPU: gpu },
});
const actor = (node_id: string | null, GPU: number, name = "other", state = "ALIVE") => ({
  state,
  node_id,
  name,
  required_resources: { GPU },
});
const free = (...args: Parameters<typeof snapshotOf>): (number | null)[] =>
  snapshotOf(...args).map((n) => n.available === null ? null : n.available["GPU"] ?? 0);

test("free is total less used less what placement groups reserve", () => {
  const text = {
    a: "1.0/8.0 GPU (1.0 used of 4.0 reserved in placement groups)",
    b: "4.0/4.0 GPU",
  };
  assert.deepEqual(free([row("a", 8), row("b", 4)], text, [], []), [4, 0]);
});

test("the list of actors is fresher than the text: the larger use counts", () => {
  const actors = [actor("a", 2), actor("a", 1), actor("a", 9, "x", "DEAD"), actor(null, 9)];
  assert.deepEqual(free([row("a", 8)], { a: "0.0/8.0 GPU" }, actors, []), [5]);
  assert.deepEqual(free([row("a", 8)], { a: "6.0/8.0 GPU" }, actors, []), [2]);
});

test("a claim of our own counts once: by its actor, or by itself where there is none", () => {
  const own = [{ job: "j", node: "a", resources: { GPU: 2 } }];
  const text = { a: "0.0/8.0 GPU" };
  assert.deepEqual(free([row("a", 8)], text, [], own), [6]);
  const running = [actor("a", 2, "_ray_internal_job_actor_j")];
  assert.deepEqual(free([row("a", 8)], text, running, own), [6]);
  const dead = [actor("a", 2, "_ray_internal_job_actor_j", "DEAD")];
  assert.deepEqual(free([row("a", 8)], text, dead, own), [6], "its lease is not over");
});

test("a node that is dead keeps its row and cannot be used; one without text is not known", () => {
  const nodes = snapshotOf([row("a", 8, "DEAD"), row("b", 8)], { a: "0.0/8.0 GPU" }, [], []);
  assert.deepEqual(nodes.map((n) => [n.alive, n.available === null]), [[false, false], [
    true,
    true,
  ]]);
});
