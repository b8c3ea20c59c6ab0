import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { KeeperClient, KeeperError } from "../../../src/drivers/keeper/mod.ts";
import { socketOf, tokenFileOf } from "../../../src/drivers/keeper/place.ts";
import { hasProcessTable, isRunning } from "../../../src/drivers/process-table.ts";
import { keep, kept, keptOutside, shell } from "./support.ts";
import { until } from "../../until.ts";

const quiet = { exited: () => {}, lost: () => {} };
const needsTable = hasProcessTable ? {} : { skip: "there is no /proc here to find strays with" };

test("exit codes and signals come through the guardian, each with its last lines", async (t) => {
  const { client, directory, exitOf } = await keep(t);
  await client.spawn(shell(directory, "zero", "exit 0"));
  await client.spawn(shell(directory, "seven", "echo one; echo two >&2; exit 7"));
  await client.spawn(shell(directory, "segv", "echo bad; kill -SEGV $$"));
  const zero = await exitOf("zero");
  assert.deepEqual([zero.code, zero.signal, zero.tail], [0, null, []]);
  const seven = await exitOf("seven");
  assert.deepEqual([seven.code, seven.signal, seven.tail], [7, null, ["one", "two"]]);
  const segv = await exitOf("segv");
  assert.deepEqual([segv.code, segv.signal, segv.tail[0]], [null, "SIGSEGV", "bad"]);
});

test("the tail of a flood is its last twenty lines, none of them cut", async (t) => {
  const { client, directory, exitOf } = await keep(t);
  await client.spawn(
    shell(directory, "flood", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"),
  );
  const { tail } = await exitOf("flood");
  assert.deepEqual(tail, Array.from({ length: 20 }, (_, k) => `line ${2980 + k}`));
  assert.deepEqual(await client.tail("flood", 2), ["line 2998", "line 2999"]);
});

test("a log that grows beyond its limit is kept once and begins anew", async (t) => {
  const { client, directory } = await keep(t);
  const launch = shell(directory, "chatty", "while :; do echo 0123456789; sleep 0.01; done");
  await client.spawn({ ...launch, maxLogBytes: 500 });
  await until(() => existsSync(`${launch.log}.1`), "it was kept");
  assert.ok(statSync(`${launch.log}.1`).size > 500);
  // It goes on, at the beginning of the file.
  await until(() => statSync(launch.log).size > 0, "it goes on");
  assert.match(readFileSync(launch.log, "utf8"), /^[0-9\n]+$/);
});

test("what cannot be started is an exit that says why", async (t) => {
  const { client, directory, exitOf } = await keep(t);
  const base = shell(directory, "x", "");
  const missing = await client.spawn({ ...base, id: "missing", argv: ["no-such-program"] });
  assert.equal(missing.pid, null);
  const exit = await exitOf("missing");
  assert.equal(exit.error?.code, "ENOENT");
  assert.match(exit.error?.message ?? "", /^no-such-program was not found in PATH/);
  await client.spawn({ ...base, id: "directory", cwd: join(directory, "nowhere") });
  assert.match((await exitOf("directory")).error?.message ?? "", /nowhere does not exist$/);
  await client.spawn({ ...base, id: "plain", argv: [fileURLToPath(import.meta.url)] });
  assert.equal((await exitOf("plain")).error?.code, "EACCES");
});

test("a launch has exactly the environment that was asked for, and its mark", async (t) => {
  const { client, directory, place, exitOf } = await keep(t);
  await client.spawn({
    ...shell(directory, "env", "exec env"),
    env: { A: "1 2", PATH: "/usr/bin:/bin" },
  });
  const { tail } = await exitOf("env");
  // PWD is the guardian shell's own.
  assert.deepEqual(tail.filter((l) => !/^(PWD|SHLVL|_|OLDPWD)=/.test(l)).sort(), [
    "A=1 2",
    `MUSTER_LAUNCH=${place.mark}/env`,
    "PATH=/usr/bin:/bin",
    "SPT_NOENV=1",
  ]);
});

test("the same id again is the same process", async (t) => {
  const { client, directory } = await keep(t);
  const first = await client.spawn(shell(directory, "one", "sleep 60"));
  const second = await client.spawn(shell(directory, "one", "sleep 60"));
  assert.ok(first.pid !== null);
  assert.equal(second.pid, first.pid);
  assert.equal((await client.list()).length, 1);
});

test("stop lets a process end by itself, and kills one that does not", async (t) => {
  const { client, directory, exitOf } = await keep(t);
  await client.spawn(
    shell(
      directory,
      "polite",
      `trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done`,
    ),
  );
  await client.spawn(
    shell(directory, "deaf", `trap '' TERM; echo up; while :; do sleep 0.05; done`),
  );
  for (const id of ["polite", "deaf"]) {
    while ((await client.tail(id, 1))[0] !== "up") await new Promise((r) => setTimeout(r, 10));
  }
  const polite = await client.stop("polite", 10_000);
  assert.deepEqual([polite.killed, polite.stuck], [[], []]);
  const bye = await exitOf("polite");
  assert.deepEqual([bye.code, bye.tail.at(-1)], [5, "bye"]);
  const deaf = await client.stop("deaf", 200);
  assert.deepEqual(deaf.killed, ["deaf"]);
  assert.equal((await exitOf("deaf")).signal, "SIGKILL");
});

test(
  "nothing of a launch outlives its leader: not its group, nor what left the group",
  needsTable,
  async (t) => {
    const { client, directory, place, exitOf } = await keep(t);
    await client.spawn(shell(directory, "tree", "sleep 60 & setsid sleep 61 & sleep 0.3; exit 3"));
    await until(() => kept(place).length >= 3, "the tree stands");
    assert.equal((await exitOf("tree")).code, 3);
    await until(() => kept(place).length === 0, "the tree is gone");
  },
);

test("stop counts the strays that it found by mark", needsTable, async (t) => {
  const { client, directory, place } = await keep(t);
  const { pid } = await client.spawn(
    shell(directory, "tree", "setsid sleep 61 & setsid sleep 62 & wait"),
  );
  const outside = () => keptOutside(place, pid!);
  await until(() => outside().length === 2, "both have left the group");
  const { strays, stuck } = await client.stop("tree", 2000);
  assert.deepEqual([strays, stuck, kept(place)], [2, [], []]);
});

test("signals reach the group or the leader alone, and nobody after the end", async (t) => {
  const { client, directory, exitOf } = await keep(t);
  await client.spawn(shell(directory, "one", "sleep 60"));
  assert.equal(await client.signal("one", "SIGUSR1", "leader"), true);
  assert.equal((await exitOf("one")).signal, "SIGUSR1");
  assert.equal(await client.signal("one", "SIGUSR1"), false);
});

test("socket, token and log are for this user only", async (t) => {
  const { place, client, directory, exitOf } = await keep(t);
  await client.spawn(shell(directory, "one", "exit 0"));
  await exitOf("one");
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
  assert.deepEqual(
    [
      mode(place.directory),
      mode(socketOf(place)),
      mode(tokenFileOf(place)),
      mode(join(directory, "logs/one.log")),
    ],
    ["700", "600", "600", "600"],
  );
});

test("a wrong token, an old fence, another protocol and a command before hello are refused by name", async (t) => {
  const { place, client } = await keep(t);
  const refusal = (options: Parameters<typeof KeeperClient.connect>[1]): Promise<string> =>
    KeeperClient.connect(place, options, quiet).then(() => "admitted", (e: KeeperError) => e.code);
  assert.equal(
    await refusal({ fence: 2, leaseMs: 0, token: "f".repeat(64) }),
    "keeper-unauthorised",
  );
  assert.equal(await refusal({ fence: 2, leaseMs: 0, token: "short" }), "keeper-unauthorised");
  assert.equal(await refusal({ fence: 0, leaseMs: 0 }), "keeper-fenced");
  const { pid } = client.welcome.keeper;
  assert.equal(
    await refusal({ fence: 2, leaseMs: 0, expect: { pid: pid + 1, startTicks: 1, bootId: null } }),
    "keeper-other",
  );
});

const raw = (path: string, text: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(path, () => socket.write(text));
    let said = "";
    socket.on("data", (chunk) => said += chunk);
    socket.on("error", () => {});
    socket.on("close", () => resolve(said));
  });

test("garbage closes its connection and harms nobody", async (t) => {
  const { place, client } = await keep(t);
  assert.equal(await raw(socketOf(place), "GET / HTTP/1.1\r\n\r\n"), "");
  assert.equal(await raw(socketOf(place), '{"do":"list"}\n'), "");
  assert.match(await raw(socketOf(place), '{"n":1,"do":"list"}\n'), /"hello-first"/);
  assert.match(await raw(socketOf(place), '{"n":1,"do":"fly"}\n'), /unknown command/);
  assert.equal(await raw(socketOf(place), "x".repeat(1_100_000)), "");
  await client.ping();
});

test("a bad spawn says which member is wrong", async (t) => {
  const { client, directory } = await keep(t);
  const base = shell(directory, "x", "");
  const refused = (change: object): Promise<string> =>
    client.spawn({ ...base, ...change }).then(
      () => "",
      (e: KeeperError) => `${e.code} ${e.message}`,
    );
  assert.match(await refused({ cwd: "here" }), /keeper-bad-request .*cwd must be an absolute path/);
  assert.match(await refused({ argv: [] }), /argv names no program/);
  assert.match(await refused({ argv: ["a", 1] }), /argv\[1\] must be a string/);
  assert.match(await refused({ env: { "A=B": "" } }), /env has an impossible name "A=B"/);
});

test("a higher fence takes over, and the one before is told and obeyed no more", async (t) => {
  const first = await keep(t);
  const { pid } = await first.client.spawn(shell(first.directory, "one", "sleep 60"));
  const second = await KeeperClient.connect(first.place, { fence: 6, leaseMs: 0 }, quiet);
  t.after(() => second.hostStop(100).catch(() => {}));
  assert.equal(second.welcome.children[0]?.pid, pid);
  await until(() => first.lost.length === 1, "the first is told");
  assert.deepEqual(first.lost, ["superseded: an owner with fence 6 has taken over"]);
  await assert.rejects(first.client.ping(), { code: "keeper-lost" });
  assert.equal((await second.list())[0]?.alive, true);
});

test("exits are told again until they are acknowledged", async (t) => {
  const { client, place, directory, exitOf } = await keep(t, { leaseMs: 60_000 });
  await client.spawn(shell(directory, "a", "exit 1"));
  await exitOf("a");
  await client.spawn(shell(directory, "b", "exit 2"));
  const b = await exitOf("b");
  await client.acknowledge(1);
  client.detach();
  const again = await KeeperClient.connect(place, { fence: 1, leaseMs: 0 }, quiet);
  t.after(() => again.hostStop(100).catch(() => {}));
  assert.deepEqual(again.welcome.exits, [b]);
  await again.acknowledge(2);
  const third = await KeeperClient.connect(place, { fence: 1, leaseMs: 0 }, quiet);
  assert.deepEqual(third.welcome.exits, []);
  await third.hostStop(100).catch(() => {});
});

test("host-stop ends everything, the keeper and its directory, in that order", async (t) => {
  const { client, place, directory, exits, stopped, lost } = await keep(t);
  for (const id of ["a", "b", "c"]) await client.spawn(shell(directory, id, "sleep 60"));
  const report = await client.hostStop(5000);
  assert.deepEqual([report.killed, report.stuck], [[], []]);
  assert.deepEqual(exits.map((e) => e.id).sort(), ["a", "b", "c"]);
  await until(() => isRunning(client.welcome.keeper) === false, "the keeper has ended");
  assert.throws(() => readFileSync(tokenFileOf(place)), { code: "ENOENT" });
  assert.deepEqual([stopped, lost], [["asked to"], []]);
});

test("an unknown kind of hosted service is refused with the known ones", async (t) => {
  const { client } = await keep(t);
  await assert.rejects(client.startService("s", "nothing", {}), {
    code: "keeper-service-failed",
    message: /unknown kind of service "nothing" \(known: /,
  });
  assert.equal(await client.stopService("s"), false);
});

test("a keeper that cannot start says what it said", async (t) => {
  await assert.rejects(
    keep(t, { command: [process.execPath, "--no-such-option-of-a-runtime"] }),
    (error: KeeperError) => error.code === "keeper-start" && /It said:/.test(error.message),
  );
});
