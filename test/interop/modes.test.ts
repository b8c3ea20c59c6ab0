import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { inDirectory } from "../drivers/zmq/support.ts";
import { Muster } from "../e2e/support.ts";
import { Peer } from "./engine-peer.ts";

/** What `muster serve --json` says at the end. */
type Status = {
  readonly phase: string;
  readonly ready: number;
  readonly blocks: { readonly sum: number } | null;
  readonly strangers: readonly unknown[];
  readonly failure: unknown;
  readonly notes: readonly unknown[];
};

/** One front-end and the engines that are its own, by its flags and theirs. */
type Node = {
  readonly serve: string;
  readonly engines: readonly string[];
  readonly ready: number;
  /** The sum of blocks, where READY tells them. */
  readonly blocks?: number;
};

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** Starts every front-end and every engine, and waits until all front-ends have formed up and stopped. */
async function formUp(mode: (dir: string, port: number) => readonly Node[]): Promise<void> {
  await inDirectory(async (dir) => {
    const nodes = mode(dir, await freePort());
    const fronts = nodes.map(({ serve }) =>
      new Muster(["serve", "--once", "--json", "--rpc-base-path", dir, ...serve.split(" ")])
    );
    const peers = nodes.flatMap(({ engines }) =>
      engines.map((args) => new Peer("engine.py", `${args} --blocks 10`.split(" ")))
    );
    try {
      for (const [i, front] of fronts.entries()) {
        const ended = await front.ended;
        const said = peers.map((peer) => peer.errors.slice(-500)).join("");
        assert.equal(ended.code, 0, `${nodes[i]!.serve}\n${ended.out}\n${ended.err}\n${said}`);
        const status = JSON.parse(ended.out) as Status;
        assert.equal(status.ready, nodes[i]!.ready);
        const { blocks } = nodes[i]!;
        if (blocks !== undefined) assert.equal(status.blocks?.sum, blocks);
        assert.deepEqual([status.failure, status.strangers, status.notes], [null, [], []]);
        assert.deepEqual(peers.flatMap((peer) => peer.heard("error")), []);
      }
    } finally {
      for (const front of fronts) front.kill();
      await Promise.all(peers.map((peer) => peer.stop()));
    }
  });
}

const local = (dir: string, ranks: string, more = "") =>
  `--ranks ${ranks} --handshake ipc://${dir}/r0-handshake --local ${more}`.trim();

test("internal, one node: ipc throughout, in every generation", async () => {
  for (const generation of ["0.12", "mid", "newest"]) {
    await formUp((dir) => [{
      serve: `--data-parallel-size 4 --moe --generation ${generation}`,
      engines: [local(dir, "0-3", `--size 4 --hash abc --generation ${generation}`)],
      ready: 4,
      // Newest engines tell them in their first frame, which may come after the last READY ended this run.
      ...(generation === "newest" ? {} : { blocks: 40 }),
    }]);
  }
});

test("internal, dense, with two API servers: no coordinator's waves, engines connect to both", async () => {
  await formUp((dir) => [{
    serve: "--data-parallel-size 2 --api-server-count 2",
    engines: [local(dir, "0-1")],
    ready: 2,
  }]);
});

test("internal, two nodes: own engines over tcp, the other node's are headless", async () => {
  await formUp((_, port) => {
    const head = `--handshake tcp://127.0.0.1:${port}`;
    return [{
      serve: "--data-parallel-size 4 --data-parallel-size-local 2 --moe --allow-loopback " +
        `--data-parallel-address 127.0.0.1 --data-parallel-rpc-port ${port}`,
      engines: [`--ranks 0-1 ${head} --local`, `--ranks 2-3 ${head} --headless`],
      ready: 4,
    }];
  });
});

test("internal, no engine on the head: all are remote", async () => {
  await formUp((_, port) => [{
    serve: "--data-parallel-size 2 --data-parallel-size-local 0 --allow-loopback " +
      `--data-parallel-address 127.0.0.1 --data-parallel-rpc-port ${port}`,
    engines: [`--ranks 0-1 --handshake tcp://127.0.0.1:${port} --headless`],
    ready: 2,
  }]);
});

test("hybrid: one front-end per node, the second node's engines shake hands twice", async () => {
  await formUp((dir, port) => {
    const shared =
      "--data-parallel-size 4 --data-parallel-size-local 2 --data-parallel-hybrid-lb --moe " +
      `--allow-loopback --data-parallel-address 127.0.0.1 --data-parallel-rpc-port ${port}`;
    const head = `--handshake tcp://127.0.0.1:${port}`;
    return [
      { serve: shared, engines: [`--ranks 0-1 ${head} --local --size 4`], ready: 4 },
      {
        serve: `${shared} --data-parallel-start-rank 2`,
        engines: [`--ranks 2-3 ${head} --client-handshake ipc://${dir}/r2-handshake --size 4`],
        ready: 2,
      },
    ];
  });
});

test("external: one front-end per rank, rank 0's shakes hands with all", async () => {
  await formUp((dir, port) => {
    const shared = "--data-parallel-size 3 --data-parallel-external-lb --moe --allow-loopback " +
      `--data-parallel-address 127.0.0.1 --data-parallel-rpc-port ${port} --data-parallel-rank`;
    const head = `--handshake tcp://127.0.0.1:${port} --size 3`;
    const own = (rank: number) => ({
      serve: `${shared} ${rank}`,
      engines: [`--ranks ${rank} ${head} --client-handshake ipc://${dir}/r${rank}-handshake`],
      ready: 1,
    });
    return [
      { serve: `${shared} 0`, engines: [`--ranks 0 ${head} --local`], ready: 3 },
      own(1),
      own(2),
    ];
  });
});

test("offline: one process and one engine per rank, no coordinator", async () => {
  await formUp((dir) =>
    [0, 1].map((rank) => ({
      serve:
        `--data-parallel-size 2 --data-parallel-rank ${rank} --data-parallel-rank-local ${rank} --moe`,
      engines: [`--ranks ${rank} --handshake ipc://${dir}/r${rank}-handshake --local --size 2`],
      ready: 1,
    }))
  );
});

test("elastic: addresses are tcp, so that a later scale-up may leave the node", async () => {
  await formUp((_, port) => [{
    serve: "--data-parallel-size 2 --moe --enable-elastic-ep --enable-eplb --allow-loopback " +
      `--data-parallel-address 127.0.0.1 --data-parallel-rpc-port ${port}`,
    engines: [`--ranks 0-1 --handshake tcp://127.0.0.1:${port} --local`],
    ready: 2,
  }]);
});
