/** The HTTP API over a group that scales in memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertGuarded, ServiceRefused } from "../../src/service/access.ts";
import { Feed } from "../../src/service/feed.ts";
import { listen, type ServiceCluster } from "../../src/service/mod.ts";
import { ScalingGroup } from "../../src/testing/scaling-group.ts";
import type { ClusterStatus } from "../../src/view/status.ts";

interface Api {
  readonly group: ScalingGroup;
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: never }>;
  readonly url: string;
}

async function withApi(
  options: { size: number; token?: string; drained?: ServiceCluster["drained"] },
  act: (api: Api) => Promise<void>,
): Promise<void> {
  const group = await ScalingGroup.start({ size: options.size, maxSize: 4 });
  const cluster: ServiceCluster = {
    scaling: group.scaler,
    instance: "run-1",
    status: () =>
      ({ phase: "formed", ranks: [], seq: group.host.system.seq }) as never as ClusterStatus,
    onEvent: () => () => {},
    ...(options.drained === undefined ? {} : { drained: options.drained }),
  };
  const { token } = options;
  const server = await listen({ cluster, ...(token === undefined ? {} : { token }) });
  try {
    await act({
      group,
      url: server.url,
      call: async (method, path, body) => {
        const response = await fetch(server.url + path, {
          method,
          ...(body === undefined
            ? {}
            : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        });
        const text = await response.text();
        return {
          status: response.status,
          body: (text.startsWith("{") ? JSON.parse(text) : text) as never,
        };
      },
    });
  } finally {
    await server.close();
    await group.close();
  }
}

test("POST /scale_elastic_ep scales and answers as the original does", () =>
  withApi({ size: 3 }, async ({ call, group }) => {
    const { status, body } = await call("POST", "/scale_elastic_ep", { new_data_parallel_size: 2 });
    assert.equal(status, 200);
    assert.equal((body as { message: string }).message, "Scaled to 2 data parallel engines");
    assert.equal(group.scaler.size, 2);
    const idle = await call("POST", "/is_scaling_elastic_ep");
    assert.deepEqual(
      [
        idle.body["is_scaling_elastic_ep"],
        idle.body["phase"],
        idle.body["effective_data_parallel_size"],
      ],
      [false, "completed", 2],
    );
  }));

test("bad bodies are refused with the original's words and 400", () =>
  withApi({ size: 2 }, async ({ call }) => {
    const refusals: [unknown, string][] = [
      ["{", "Invalid JSON format"],
      [{}, "new_data_parallel_size is required"],
      [{ new_data_parallel_size: 0 }, "new_data_parallel_size must be a positive integer"],
      [{ new_data_parallel_size: "3" }, "new_data_parallel_size must be a positive integer"],
      [
        { new_data_parallel_size: 3, drain_timeout: -1 },
        "drain_timeout must be a positive integer",
      ],
      [
        { new_data_parallel_size: 3, operation_id: "" },
        "operation_id must be a non-empty string of at most 256 characters",
      ],
      [
        { new_data_parallel_size: 9 },
        "Cannot scale to data_parallel_size 9; --elastic-ep-max-dp-size is 4.",
      ],
    ];
    for (const [body, detail] of refusals) {
      const answer = await call("POST", "/scale_elastic_ep", body);
      assert.deepEqual([answer.status, answer.body["detail"]], [400, detail]);
    }
    const other = await call("POST", "/scale_elastic_ep", {
      new_data_parallel_size: 3,
      expected_instance_id: "run-0",
    });
    assert.equal(other.status, 409);
  }));

test("a running operation: rivals get 409 with it, other paths 503, it can be looked at and aborted", () =>
  withApi({ size: 3 }, async ({ call, group }) => {
    group.engines.faults.set("1 reinitialize_distributed", "silent");
    const scaling = call("POST", "/scale_elastic_ep", {
      new_data_parallel_size: 2,
      operation_id: "down-1",
    });
    while (group.scaler.status().running === null) await new Promise((r) => setTimeout(r, 5));
    const rival = await call("POST", "/scale_elastic_ep", { new_data_parallel_size: 4 });
    assert.equal(rival.status, 409);
    assert.equal((rival.body["running"] as { operation: string }).operation, "down-1");
    assert.equal((await call("POST", "/v1/completions")).status, 503);
    assert.equal((await call("GET", "/readyz")).status, 503);
    assert.equal((await call("GET", "/livez")).status, 200);
    const busy = await call("POST", "/is_scaling_elastic_ep");
    assert.deepEqual([busy.body["is_scaling_elastic_ep"], busy.body["phase"]], [true, "preparing"]);
    assert.equal(
      (await call("POST", "/operations/down-1/abort", { reason: "enough" })).status,
      202,
    );
    const failed = await scaling;
    assert.deepEqual([failed.status, failed.body["detail"]], [500, "Scale failed"]);
    const record = await call("GET", "/operations/down-1");
    assert.deepEqual([record.body["phase"], record.body["effectiveSize"]], ["failed", 3]);
    assert.equal((await call("GET", "/operations/none")).status, 404);
    assert.equal((await call("POST", "/operations/down-1/abort")).status, 409);
    assert.match(
      String((await call("GET", "/metrics")).body),
      /muster_operations_total\{outcome="failed"\} 1/,
    );
    assert.equal((await call("GET", "/nowhere")).status, 404);
  }));

test("events are server-sent, and go on after Last-Event-ID", () =>
  withApi({ size: 3 }, async ({ url, group }) => {
    const read = async (last: string, until: RegExp): Promise<string> => {
      const stop = new AbortController();
      const response = await fetch(`${url}/events`, {
        headers: { "Last-Event-ID": last },
        signal: stop.signal,
      });
      let text = "";
      const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
      while (!until.test(text)) text += (await reader.read()).value ?? "";
      await reader.cancel();
      stop.abort();
      return text;
    };
    const following = read("0", /"phase":"completed"/);
    await (await group.scaler.scale(2)).completed();
    const all = await following;
    assert.match(all, /event: operation\n/);
    const ids = [...all.matchAll(/^id: (\d+)$/gm)].map((m) => Number(m[1]));
    const rest = await read(String(ids[0]), /"phase":"completed"/);
    assert.equal(Number(/^id: (\d+)$/m.exec(rest)?.[1]), ids[0]! + 1);
    assert.match(await read("99999", /event: reset/), /event: reset/);
  }));

test("a token is needed where there is one, and probes go without", () =>
  withApi({ size: 2, token: "secret" }, async ({ url }) => {
    assert.equal((await fetch(`${url}/status`)).status, 401);
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    const given = await fetch(`${url}/status`, { headers: { Authorization: "Bearer secret" } });
    assert.equal(given.status, 200);
    await given.body?.cancel();
  }));

test("anything but loopback without a token is refused", () => {
  assert.throws(() => assertGuarded("0.0.0.0", undefined), ServiceRefused);
  assert.throws(() => assertGuarded("10.0.0.1", ""), ServiceRefused);
  assertGuarded("127.0.0.1", undefined);
  assertGuarded("0.0.0.0", "secret");
});

test("a feed says when what was missed is not known any more", () => {
  const feed = new Feed(2);
  for (const n of [1, 2, 3]) feed.push("n", n);
  assert.equal(feed.since(0), undefined);
  assert.deepEqual(feed.since(1)?.map((e) => e.data), [2, 3]);
  assert.deepEqual(feed.since(3), []);
  assert.equal(feed.since(4), undefined);
});

test("drain_timeout: ranks that leave finish their requests first, and until then everybody is told", async () => {
  let finish = (_idle: boolean) => {};
  const asked: unknown[] = [];
  const drained = (ranks: readonly number[], timeoutMs: number) => {
    asked.push([ranks, timeoutMs]);
    return new Promise<boolean>((resolve) => finish = resolve);
  };
  await withApi({ size: 3, drained }, async ({ call, group }) => {
    const request = { new_data_parallel_size: 1, drain_timeout: 7 };
    const first = call("POST", "/scale_elastic_ep", request);
    while (asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const during = await call("GET", "/status");
    assert.deepEqual(during.body["draining"], { target: 1, ranks: [1, 2] });
    assert.equal(
      (await call("POST", "/is_scaling_elastic_ep")).body["is_scaling_elastic_ep"],
      true,
    );
    assert.equal((await call("GET", "/v1/models")).status, 503);
    assert.equal((await call("POST", "/scale_elastic_ep", request)).status, 409);
    finish(false);
    const { status, body } = await first;
    assert.equal(status, 408);
    assert.equal(body["detail"], "Scale failed due to request drain timeout after 7 seconds");
    assert.equal(group.scaler.size, 3, "nothing has happened");

    const second = call("POST", "/scale_elastic_ep", request);
    while (asked.length === 1) await new Promise((resolve) => setTimeout(resolve, 5));
    finish(true);
    assert.equal((await second).status, 200);
    assert.equal(group.scaler.size, 1);
    assert.deepEqual(asked, [[[1, 2], 7000], [[1, 2], 7000]]);
    // Nobody leaves, so nobody is waited for.
    await call("POST", "/scale_elastic_ep", { new_data_parallel_size: 2, drain_timeout: 7 });
    assert.equal(asked.length, 2);
  });
});

test("drain_timeout where nobody knows the requests of ranks is refused, and says so", () =>
  withApi({ size: 2 }, async ({ call }) => {
    const { status, body } = await call("POST", "/scale_elastic_ep", {
      new_data_parallel_size: 1,
      drain_timeout: 7,
    });
    assert.deepEqual([status, body["detail"]], [
      400,
      "drain_timeout: nobody here knows the requests of ranks",
    ]);
  }));
