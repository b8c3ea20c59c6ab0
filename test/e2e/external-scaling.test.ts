/** Behind an external load balancer: a server of ours for each rank, and an orchestrator that asks all of them, as it asks vLLM's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FrontEnds } from "./front-ends.ts";
import { muster } from "./support.ts";

const options = { timeout: 500_000 };

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
    const up = await muster("scale", "3", "--ranks", cluster.urls(2), "--deadline", "150s");
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

    const down = await muster(
      ...["scale", "2", "--ranks", cluster.urls(3), "--deadline", "150s", "--drain-timeout", "60s"],
    );
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

test(
  "kill -9 of one server and then of rank 0's while the new rank is awaited: they come back, the orchestrator finds them, and it completes",
  options,
  async (t) => {
    const cluster = await FrontEnds.start(t, 2);
    const asked = muster(
      ...["scale", "3", "--ranks", cluster.urls(2), "--deadline", "150s", "--operation", "up"],
    );
    const awaits = async (rank: number): Promise<void> => {
      const state = () =>
        cluster.operation(rank, "up").then((r) => r?.participants[0]?.state).catch(() => undefined);
      while (await state() !== "preparing.awaitingEngines") {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    for (const rank of [1, 0]) {
      await Promise.all([awaits(0), awaits(1)]);
      await cluster.kill(rank);
      const back = await cluster.again(rank);
      await back.said(/run \S+ went on|recovered|inputs/);
    }
    await cluster.serve(2, 3, true);
    const { code, out, err } = await asked;
    assert.equal(code, 0, `${out}\n${err}`);
    assert.match(out, /Scaled to 3 data parallel engines\./);
    for (const rank of [0, 1, 2]) {
      const { scaling, failure } = await cluster.status(rank);
      assert.deepEqual([rank, scaling.size, failure], [rank, 3, null]);
    }
  },
);

test(
  "one server is asked to abort: all of them end as failed, and say which engines have to start anew before the next attempt",
  options,
  async (t) => {
    const cluster = await FrontEnds.start(t, 2);
    const asked = muster(
      ...["scale", "3", "--ranks", cluster.urls(2), "--deadline", "150s", "--operation", "up"],
    );
    while (
      (await cluster.operation(1, "up"))?.participants[0]?.state !== "preparing.awaitingEngines"
    ) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const abort = await muster("abort", "--url", cluster.url(1));
    assert.equal(abort.code, 0, abort.err);
    const { code, out } = await asked;
    assert.equal(code, 1);
    assert.match(out, /Scaling to 3 failed on every rank\./);
    for (const rank of [0, 1]) {
      const record = await cluster.operation(rank, "up");
      assert.deepEqual([record?.phase, record?.effectiveSize, record?.enginesToRestart], [
        "failed",
        2,
        [rank],
      ]);
    }
    const again = await muster("scale", "3", "--ranks", cluster.urls(2), "--deadline", "150s");
    assert.equal(again.code, 1);
    assert.match(again.out, /the engine of rank \d holds a reconfiguration that it cannot abandon/);
    assert.match(again.out, /stop the servers of all ranks, and start them anew/);
    await cluster.anew(2);
    const joins = cluster.serve(2, 3, true);
    const anew = await muster("scale", "3", "--ranks", cluster.urls(2), "--deadline", "150s");
    assert.equal(anew.code, 0, anew.out);
    await joins;
  },
);
