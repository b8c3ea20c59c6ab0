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
