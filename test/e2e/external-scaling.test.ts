/** Behind an external load balancer: a server of ours for each rank, and an orchestrator that asks all of them, as it asks vLLM's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FrontEnds } from "./front-ends.ts";
import { muster } from "./support.ts";

const options = { timeout: 180_000 };

test(
  "two servers become three and two again: the orchestrator asks each of them, the new rank joins by itself, the leaver says that it is retired",
  options,
  async (t) => {
    const cluster = await FrontEnds.start(t, 2);
    for (const rank of [0, 1]) {
      const { scaling } = await cluster.status(rank);
      assert.deepEqual([scaling.size, scaling.fronts, scaling.broken], [2, [rank], null]);
    }

    const joins = cluster.serve(2, 3, true);
    const up = await muster("scale", "3", "--ranks", cluster.urls(2), "--deadline", "60s");
    assert.equal(up.code, 0, `${up.out}\n${up.err}\n${cluster.server(0).out}`);
    assert.match(up.out, /Scaled to 3 data parallel engines\./);
    await joins;
    await cluster.formed(2);
    for (const rank of [0, 1, 2]) {
      const { scaling, failure } = await cluster.status(rank);
      const notes = await cluster.marks(rank);
      assert.deepEqual([rank, scaling.size, notes, failure], [rank, 3, [], null]);
    }
    const head = await cluster.status(0);
    assert.deepEqual(head.ranks.map((r) => [r.rank, r.state, r.blocks]), [
      [0, "ready", 1000],
      [1, "ready", 1000],
      [2, "ready", 1000],
    ]);
    assert.deepEqual(head.blocks, { sum: 3000, min: 1000, max: 1000 });

    const down = await muster("scale", "2", "--ranks", cluster.urls(3), "--deadline", "60s");
    assert.equal(down.code, 0, `${down.out}\n${down.err}`);
    assert.match(down.out, /Ranks 2 left and can be deleted\./);
    for (const rank of [0, 1, 2]) {
      const { scaling, failure } = await cluster.status(rank);
      const notes = await cluster.marks(rank);
      assert.deepEqual([rank, scaling.size, scaling.retired, notes, failure], [
        rank,
        2,
        rank === 2,
        [],
        null,
      ]);
    }
    const retired = await fetch(`${cluster.url(2)}/v1/completions`, { method: "POST" });
    assert.deepEqual([retired.status, await retired.json()], [503, {
      error: "This data-parallel rank has been retired and is awaiting shutdown.",
    }]);
    assert.equal((await fetch(`${cluster.url(2)}/readyz`)).status, 503);
    assert.deepEqual((await cluster.status(0)).ranks.map((r) => r.state), [
      "ready",
      "ready",
      "left",
    ]);
  },
);
