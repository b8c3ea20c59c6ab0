import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { KeeperClient, sweepAfterKeeper } from "../../../src/drivers/keeper/mod.ts";
import { hasProcessTable, sendSignal } from "../../../src/drivers/process-table.ts";
import {
  controller,
  gone,
  keep,
  keeperOn,
  kept,
  pause,
  placeFor,
  scratch,
  shell,
} from "./support.ts";
import { until } from "../../until.ts";

const here = "deno" in process.versions ? "deno" : "node";
const there = here === "deno" ? "node" : "deno";
const needsTable = hasProcessTable ? {} : { skip: "there is no /proc here to count what is left" };
const quiet = { exited: () => {}, lost: () => {} };
const DEAF = "trap '' TERM; while :; do sleep 0.05; done";
const TREE = "sleep 60 & setsid sleep 61 & wait";

/** Who keeps and who controls: every pairing of the two runtimes is run by one of the two runs of this file. */
const pairings = [[here, here], [here, there]] as const;
for (const [controls, keeps] of pairings) {
  test(
    `with lease 0, kill -9 of a controller on ${controls} ends all that its keeper on ${keeps} holds`,
    needsTable,
    async (t) => {
      const directory = scratch(t);
      const place = placeFor(t, directory);
      const launches = [TREE, DEAF, "exit 3"].map((s, i) => shell(directory, `l${i}`, s));
      const c = await controller(
        t,
        { place, leaseMs: 0, launches, command: keeperOn(keeps) },
        controls,
      );
      assert.equal(c.keeper.runtime, keeps);
      await until(() => kept(place).length >= 6, "all of it runs");
      sendSignal(c.process.pid!, "SIGKILL");
      await until(() => kept(place).length === 0 && gone(c.keeper), "nothing is left");
    },
  );

  test(
    `with a lease, the next controller finds the same processes (${controls} controls, ${keeps} keeps)`,
    needsTable,
    async (t) => {
      const directory = scratch(t);
      const place = placeFor(t, directory);
      const launches = ["sleep 60", "sleep 60", "echo last words; exit 4"].map((s, i) =>
        shell(directory, `l${i}`, s)
      );
      const c = await controller(
        t,
        { place, leaseMs: 5000, launches, command: keeperOn(keeps) },
        controls,
      );
      await until(() => kept(place).length >= 4, "they run");
      sendSignal(c.process.pid!, "SIGKILL");
      await pause(300);
      const client = await KeeperClient.connect(place, {
        fence: 2,
        leaseMs: 0,
        expect: c.keeper,
      }, quiet);
      const alive = client.welcome.children.filter((x) => x.alive);
      assert.deepEqual(
        alive.map((x) => [x.id, x.pid, x.startTicks]),
        c.children.slice(0, 2).map((x) => [x.id, x.pid, x.startTicks]),
      );
      assert.deepEqual(
        client.welcome.exits.map((e) => [e.seq, e.id, e.code, e.tail]),
        [[1, "l2", 4, ["last words"]]],
      );
      // The new lease is 0: letting go ends it all.
      client.detach();
      await until(() => kept(place).length === 0 && gone(c.keeper), "nothing is left");
    },
  );
}

test("past the lease everything is gone by itself", needsTable, async (t) => {
  const directory = scratch(t);
  const place = placeFor(t, directory);
  const c = await controller(t, { place, leaseMs: 400, launches: [shell(directory, "a", TREE)] });
  await until(() => kept(place).length >= 4, "the tree stands");
  sendSignal(c.process.pid!, "SIGKILL");
  await pause(100);
  assert.ok(kept(place).length >= 4, "the lease holds it");
  await until(() => kept(place).length === 0 && gone(c.keeper), "nothing is left");
  await assert.rejects(KeeperClient.connect(place, { fence: 2, leaseMs: 0 }, quiet), {
    code: "keeper-gone",
  });
});

test(
  "a stopped controller keeps its lease while its connection is open, unless it promised a heartbeat",
  needsTable,
  async (t) => {
    const directory = scratch(t);
    const open = placeFor(t, directory);
    const beating = placeFor(t, directory);
    const launches = [shell(directory, "a", "sleep 60")];
    const first = await controller(t, { place: open, leaseMs: 0, launches });
    const second = await controller(t, { place: beating, leaseMs: 0, heartbeatMs: 500, launches });
    await pause(800);
    assert.ok(kept(beating).length > 0, "a controller that runs beats");
    sendSignal(first.process.pid!, "SIGSTOP");
    sendSignal(second.process.pid!, "SIGSTOP");
    await until(
      () => kept(beating).length === 0 && gone(second.keeper),
      "the second one's are gone",
    );
    assert.ok(kept(open).length > 0);
    sendSignal(first.process.pid!, "SIGKILL");
    sendSignal(second.process.pid!, "SIGKILL");
    await until(() => kept(open).length === 0 && gone(first.keeper), "the first one's are gone");
  },
);

test(
  "kill -9 of the keeper leaves nothing: its guardians see to that, also where TERM is ignored or the group was left",
  needsTable,
  async (t) => {
    const { client, place, directory, lost, exits } = await keep(t);
    for (const [i, script] of [TREE, DEAF, TREE].entries()) {
      await client.spawn(shell(directory, `l${i}`, script));
    }
    await until(() => kept(place).length >= 10, "all of it runs");
    sendSignal(client.welcome.keeper.pid, "SIGKILL");
    await until(() => lost.length === 1, "the controller knows");
    assert.match(lost[0]!, /^keeper: /);
    // Nobody knows their exit codes any more, and none is invented.
    assert.deepEqual(exits, []);
    await until(() => kept(place).length === 0, "nothing is left");
  },
);

test(
  "kill -9 of controller and keeper together leaves nothing either, whatever the lease",
  needsTable,
  async (t) => {
    const directory = scratch(t);
    const place = placeFor(t, directory);
    const launches = [TREE, DEAF].map((s, i) => shell(directory, `l${i}`, s));
    const c = await controller(t, { place, leaseMs: 60_000, launches });
    await until(() => kept(place).length >= 6, "all of it runs");
    sendSignal(c.process.pid!, "SIGKILL");
    sendSignal(c.keeper.pid, "SIGKILL");
    await until(() => kept(place).length === 0, "nothing is left");
  },
);

test(
  "the controller's sweep ends at once what a dead keeper has left, and refuses while it lives",
  needsTable,
  async (t) => {
    const { client, place, directory } = await keep(t);
    const { keeper } = client.welcome;
    await client.spawn(shell(directory, "a", TREE));
    await until(() => kept(place).length >= 4, "the tree stands");
    await assert.rejects(sweepAfterKeeper(place, keeper), { code: "keeper-other" });
    sendSignal(keeper.pid, "SIGKILL");
    await until(() => gone(keeper), "the keeper is dead");
    const { killed } = await sweepAfterKeeper(place, keeper);
    assert.ok(killed !== null && killed >= 1, `${killed} killed`);
    assert.deepEqual(kept(place), []);
  },
);

test("a stopped keeper is silent, and a hello that was given up does nothing when it goes on", async (t) => {
  const { client, place, lost } = await keep(t);
  const { pid } = client.welcome.keeper;
  sendSignal(pid, "SIGSTOP");
  await assert.rejects(
    KeeperClient.connect(place, { fence: 2, leaseMs: 0, helloWithinMs: 200 }, quiet),
    { code: "keeper-silent" },
  );
  sendSignal(pid, "SIGCONT");
  await client.ping();
  await pause(50);
  assert.deepEqual(lost, []);
});

test(
  "SIGTERM to the keeper stops all; SIGINT and SIGHUP are its controller's business",
  needsTable,
  async (t) => {
    const { client, place, directory, stopped, exits } = await keep(t);
    const { keeper } = client.welcome;
    await client.spawn(shell(directory, "a", "sleep 60"));
    await until(() => kept(place).length >= 2, "it runs");
    sendSignal(keeper.pid, "SIGINT");
    sendSignal(keeper.pid, "SIGHUP");
    await client.ping();
    sendSignal(keeper.pid, "SIGTERM");
    await until(() => gone(keeper) && kept(place).length === 0, "nothing is left");
    assert.deepEqual([stopped, exits.length], [["SIGTERM"], 1]);
  },
);
