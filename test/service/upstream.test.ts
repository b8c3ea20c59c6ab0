/** `muster scale --ranks`: the orchestrator of original servers, against servers that answer as they do. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { scaleUpstream } from "../../src/service/upstream.ts";

type Behaviour = "scales" | "fails" | "refuses" | "silent";

async function servers(
  behaviours: readonly Behaviour[],
  act: (urls: string[], bodies: unknown[]) => Promise<void>,
): Promise<void> {
  const bodies: unknown[] = [];
  const open: Server[] = [];
  const urls = await Promise.all(behaviours.map(async (behaviour) => {
    const server = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk) => text += chunk);
      request.on("end", () => {
        bodies.push([request.url, JSON.parse(text)]);
        if (behaviour === "silent") return;
        const [status, body] = behaviour === "scales"
          ? [200, { message: "Scaled to 2 data parallel engines" }]
          : behaviour === "fails"
          ? [500, { detail: "Scale failed" }]
          : [400, { detail: "new_data_parallel_size must be a positive integer" }];
        response.writeHead(status as number, { "Content-Type": "application/json" });
        response.end(JSON.stringify(body));
      });
    });
    open.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }));
  try {
    await act(urls, bodies);
  } finally {
    for (const server of open) {
      server.closeAllConnections();
      server.close();
    }
  }
}

test("every old rank is asked at once with the original's body, and all completed is completed", () =>
  servers(["scales", "scales", "scales"], async (ranks, bodies) => {
    const report = await scaleUpstream({ ranks, target: 2, drainTimeout: 5, operation: "op" });
    assert.equal(report.outcome, "completed");
    assert.deepEqual(report.safeToDelete, [2]);
    assert.deepEqual(
      bodies,
      Array(3).fill(["/scale_elastic_ep", {
        new_data_parallel_size: 2,
        drain_timeout: 5,
        operation_id: "op",
      }]),
    );
  }));

test("some completed and one failed: nobody can say, and the first error is named", () =>
  servers(["scales", "fails"], async (ranks) => {
    const report = await scaleUpstream({ ranks, target: 1 });
    assert.equal(report.outcome, "inDoubt");
    assert.deepEqual([report.firstError?.rank, report.firstError?.text], [1, "Scale failed"]);
    assert.match(report.sentence, /Ranks 0 completed/);
  }));

test("all refused is failed", () =>
  servers(["refuses", "refuses"], async (ranks) => {
    assert.equal((await scaleUpstream({ ranks, target: 1 })).outcome, "failed");
  }));

test("a rank that is silent or cannot be reached leaves it in doubt at the deadline of the whole", () =>
  servers(["silent", "fails"], async (ranks) => {
    const report = await scaleUpstream({
      ranks: [...ranks, "http://127.0.0.1:1"],
      target: 1,
      deadlineMs: 300,
    });
    assert.equal(report.outcome, "inDoubt");
    assert.deepEqual(report.ranks.map((r) => r.answer), ["silent", "failed", "unreachable"]);
  }));

// ---- servers of Muster, which know operations by their names ---------------------------------------------------

type Handler = (url: string, times: number) => { status: number; body: unknown } | "dies";

/** Servers that answer each path as they are told; `times` counts what was asked of this path before. `dies` breaks the connection. */
async function ours(
  handlers: readonly Handler[],
  act: (urls: string[], heard: string[][]) => Promise<void>,
): Promise<void> {
  const heard: string[][] = handlers.map(() => []);
  const open = handlers.map((handler, rank) =>
    createServer((request, response) => {
      request.resume();
      request.on("end", () => {
        const what = `${request.method} ${request.url}`;
        const answer = handler(what, heard[rank]!.filter((h) => h === what).length);
        heard[rank]!.push(what);
        if (answer === "dies") return void request.socket.destroy();
        response.writeHead(answer.status, { "Content-Type": "application/json" });
        response.end(JSON.stringify(answer.body));
      });
    })
  );
  const urls = await Promise.all(open.map(async (server) => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }));
  try {
    await act(urls, heard);
  } finally {
    for (const server of open) {
      server.closeAllConnections();
      server.close();
    }
  }
}

const ASK = "POST /scale_elastic_ep";
const LOOK = "GET /operations/op";
const record = (phase: string, text: string | null = null) => ({
  operation: "op",
  phase,
  firstError: text === null ? null : { rank: null, code: "aborted", text },
});
const UNKNOWN = { error: "there is no such operation, or it ended long ago" };

test("a server of ours whose connection was lost is asked how the operation stands, until it has ended", () =>
  ours([(what, times) => {
    if (what === ASK) return "dies";
    return times < 2
      ? "dies"
      : { status: 200, body: record(times < 3 ? "committing" : "completed") };
  }], async (ranks, heard) => {
    const report = await scaleUpstream({ ranks, target: 2, operation: "op" });
    assert.equal(report.outcome, "completed");
    assert.deepEqual(heard[0], [ASK, LOOK, LOOK, LOOK, LOOK]);
  }));

test("one that came back and had never heard of it is asked again", () =>
  ours([(what, times) => {
    if (what === LOOK) return { status: 404, body: UNKNOWN };
    return times === 0 ? "dies" : { status: 200, body: { message: "Scaled" } };
  }], async (ranks, heard) => {
    const report = await scaleUpstream({ ranks, target: 2, operation: "op" });
    assert.equal(report.outcome, "completed");
    assert.deepEqual(heard[0], [ASK, LOOK, ASK]);
  }));

test("an original server that is lost is lost: it knows no operations", () =>
  ours([(what) => what === ASK ? "dies" : { status: 404, body: { detail: "Not Found" } }], async (
    ranks,
  ) => {
    const report = await scaleUpstream({ ranks, target: 2, operation: "op" });
    assert.deepEqual([report.outcome, report.ranks[0]?.answer], ["inDoubt", "unreachable"]);
  }));

test("one that cannot say how it ended is followed until it can", () =>
  ours([
    (what) =>
      what === ASK
        ? { status: 500, body: { detail: "Scale failed", operation: record("inDoubt", "aborted") } }
        : { status: 200, body: record("failed", "rank 1 gave up") },
  ], async (ranks) => {
    const report = await scaleUpstream({ ranks, target: 2, operation: "op" });
    assert.deepEqual([report.outcome, report.firstError?.text], ["failed", "rank 1 gave up"]);
  }));

test("when one server refuses, the others are asked to abort and do not wait for it", () => {
  let aborted = () => {};
  const abort = new Promise<void>((resolve) => aborted = resolve);
  return ours([
    () => ({ status: 400, body: { detail: "the cluster does not serve" } }),
    (what, times) => {
      if (what === ASK) return "dies";
      if (what.endsWith("/abort")) aborted();
      return { status: 200, body: record(times > 400 ? "completed" : "preparing") };
    },
  ], async (ranks, heard) => {
    const report = scaleUpstream({ ranks, target: 1, operation: "op", deadlineMs: 3_000 });
    await abort;
    assert.ok(heard[1]!.includes("POST /operations/op/abort"));
    assert.equal((await report).ranks[0]?.answer, "refused");
  });
});
