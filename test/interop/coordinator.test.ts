import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Coordinator } from "../../src/coordinator.ts";
import { Peer } from "./engine-peer.ts";

/** Our coordinator in this process, engines and front-ends with the real encoders in theirs. */
async function cluster(
  size: number,
  body: (parts: {
    coordinator: Coordinator;
    engines: Peer;
    frontEnd: (...flags: string[]) => Promise<Peer>;
  }) => Promise<void>,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "mi-"));
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: size, moe: true, rpcBasePath: directory },
  });
  const peers: Peer[] = [];
  const start = (file: string, args: readonly string[]) => {
    const peer = new Peer(file, args);
    peers.push(peer);
    return peer;
  };
  try {
    const engines = start("engine.py", [
      ...["--ranks", `0-${size - 1}`, "--local", "--size", String(size)],
      ...["--handshake", `ipc://${directory}/r0-handshake`],
    ]);
    await coordinator.ready();
    await body({
      coordinator,
      engines,
      frontEnd: async (...flags) => {
        const peer = start("frontend.py", ["--subscribe", `ipc://${directory}/r0-stats`, ...flags]);
        await peer.until("subscribed", () => peer.heard("subscribed").length === 1);
        return peer;
      },
    });
    assert.deepEqual(peers.flatMap((peer) => peer.heard("error")), []);
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
    await coordinator.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

const publishes = (peer: Peer) =>
  peer.heard("publish").map(({ counts, wave, running }) => ({ counts, wave, running }));
/** Every one of the ranks has been told to start this wave; reminders, which exclude nobody, may come between. */
const allWaked = (engines: Peer, size: number, wave: number, exclude: number | null): boolean =>
  Array.from({ length: size }, (_, rank) => JSON.stringify([rank, wave, exclude]))
    .every((said) => waked(engines).map((w) => JSON.stringify(w)).includes(said));
const waked = (engines: Peer) =>
  engines.heard("start_dp_wave").map(({ rank, wave, exclude }) => [rank, wave, exclude]);

test("a wave from its first request to its end, as engines and front-ends of others see it", async () => {
  await cluster(3, async ({ engines, frontEnd }) => {
    const front = await frontEnd();
    front.tell({ do: "wake", exclude: 1, wave: 0 });
    await engines.until("wake-ups that exclude rank 1", () => allWaked(engines, 3, 0, 1));
    // Newest engines say themselves that they run, and that they have come to rest.
    await front.until(
      "the end of the wave",
      () => publishes(front).some((p) => p.wave === 1 && !p.running),
    );
    const states = publishes(front).filter((p) => p.counts === null).map((
      p,
    ) => [p.wave, p.running]);
    const started = states.findIndex(([wave, running]) => wave === 0 && running === true);
    const ended = states.findIndex(([wave, running]) => wave === 1 && running === false);
    assert.ok(started >= 0 && ended > started, JSON.stringify(states));
    // A front-end that believes in the old wave wakes everybody in the current one.
    engines.said.length = 0;
    front.tell({ do: "wake", exclude: 2, wave: 0 });
    await engines.until("wake-ups that exclude nobody", () => allWaked(engines, 3, 1, null));
    assert.ok(
      waked(engines).every(([, , exclude]) => exclude !== 2),
      "the stale exclusion is dropped",
    );
  });
});

test("the original's way to name the excluded engine, its identity as bytes, is understood", async () => {
  await cluster(2, async ({ engines, frontEnd }) => {
    const front = await frontEnd();
    front.tell({ do: "wake", exclude: "0100", wave: 0 });
    await engines.until("wake-ups that exclude rank 1", () => allWaked(engines, 2, 0, 1));
  });
});

test("statistics reach every front-end, one that comes late too; rows follow SCALE_ELASTIC_EP", async () => {
  await cluster(2, async ({ engines, frontEnd }) => {
    const first = await frontEnd();
    engines.tell({ do: "stats", rank: 1, running: 3, waiting: 2, step: 1, wave: 0, kv: 0.5 });
    const counts = (peer: Peer) => publishes(peer).findLast((p) => p.counts !== null)?.counts;
    const both = "[[0,0,0],[2,3,0.5]]"; // one width in all rows, also of an engine that has not reported
    await first.until("the row", () => JSON.stringify(counts(first)) === both);
    const late = await frontEnd();
    await late.until(
      "the row",
      () => JSON.stringify(counts(late))?.endsWith("[2,3,0.5]]") ?? false,
    );
    for (const size of [3, 3, 1]) first.tell({ do: "scale", size });
    await first.until("one row", () => (counts(first) as unknown[]).length === 1);
    // A rank that no longer has a row is dropped and counted, and ends nothing.
    engines.tell({ do: "stats", rank: 1, running: 9, waiting: 9, step: 2, wave: 0 });
    engines.tell({ do: "stats", rank: 0, running: 1, waiting: 0, step: 3, wave: 0 });
    await first.until("rank 0's", () => JSON.stringify(counts(first)).startsWith("[[0,1,"));
  });
});

test("everything that kills the original's coordinator, and it goes on", async () => {
  await cluster(2, async ({ engines, frontEnd, coordinator }) => {
    const front = await frontEnd();
    // 23: an index without a row; outputs and replies at the coordinator; not MessagePack; the wrong shape.
    engines.tell({ do: "raw", rank: 0, to: "report", hex: "980990c0cb40934a0000000000c0c007c0" });
    engines.tell({
      do: "raw",
      rank: 0,
      to: "report",
      hex: "980190c0cb40934a00000000009305c092c0c0c0c0c0",
    });
    engines.tell({ do: "raw", rank: 0, to: "report", hex: "c1" });
    engines.tell({ do: "raw", rank: 0, to: "report", hex: "454e47494e455f434f52455f44454144" });
    engines.tell({ do: "raw", rank: 0, to: "report", hex: "90,90" });
    // 27, 30 and section 12: sizes, waves and frames that are none.
    for (
      const hex of [
        "c1",
        "9101",
        "93010203",
        "92c0a178",
        "92b05343414c455f454c41535449435f455000",
        "92b05343414c455f454c41535449435f4550a133",
        "92c4030102030a",
        "",
      ]
    ) {
      front.tell({ do: "raw", hex });
    }
    engines.tell({ do: "start_wave", rank: 0, wave: 2 ** 40 });
    engines.tell({ do: "wave_complete", rank: 0, wave: 2 ** 52 });
    engines.tell({ do: "stats", rank: 1, running: 7, waiting: 0, step: 5, wave: 0 });
    await front.until(
      "statistics behind all that",
      () => JSON.stringify(publishes(front)).includes("[0,7,"),
    );
    assert.equal(coordinator.status().failure, null);
    const kinds = coordinator.status().strangers.map((s) => s.kind);
    assert.ok(kinds.includes("message"), JSON.stringify(coordinator.status().strangers));
    // 24: a late subscriber hears READY again; those that run are not disturbed.
    const again = new Peer("frontend.py", ["--subscribe", coordinatorBack(coordinator), "--quiet"]);
    await again.until("subscribed", () => again.heard("subscribed").length === 1);
    await again.stop();
    engines.tell({ do: "stats", rank: 1, running: 8, waiting: 0, step: 6, wave: 0 });
    await front.until("more of them", () => JSON.stringify(publishes(front)).includes("[0,8,"));
  });
});

const coordinatorBack = (coordinator: Coordinator): string =>
  (coordinator.status().endpoints["coordinator"] as { backPublish: string }).backPublish;

test("an engine of another node says ENGINE_CORE_DEAD and is gone: the rank is named, as if its process were seen to end", async () => {
  const directory = mkdtempSync(join(tmpdir(), "mi-"));
  const coordinator = await Coordinator.start({
    cluster: { dataParallelSize: 2, rpcBasePath: directory },
  });
  const peers = [0, 1].map((rank) =>
    new Peer("engine.py", [
      ...["--ranks", String(rank), "--local", "--handshake", `ipc://${directory}/r0-handshake`],
    ])
  );
  try {
    await coordinator.ready();
    peers[1]!.tell({ do: "dead", rank: 1 });
    await peers[1]!.stop();
    await peers[0]!.until("the failure", () => coordinator.status().failure !== null);
    const failure = coordinator.status().failure!;
    assert.equal(failure.code, "engine-exited");
    assert.match(
      failure.sentence,
      /^Rank 1 ended with a status that nobody knows any more while serving/,
    );
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
    await coordinator.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
