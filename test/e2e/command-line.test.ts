import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { descendants, Muster, muster } from "./support.ts";

test("a misspelt command gets a suggestion and exit code 2", async () => {
  const { code, err } = await muster("dmo");
  assert.equal(code, 2);
  assert.match(err, /unknown command 'dmo'/);
  assert.match(err, /Did you mean demo\?/);
});

test("a wrong combination is refused with the flag, the value and the fix", async () => {
  const { code, err } = await muster(
    "serve",
    "--data-parallel-size",
    "2",
    "--data-parallel-rank",
    "5",
  );
  assert.equal(code, 2);
  assert.match(err, /^muster: --data-parallel-rank \(5\): .*\[rank-out-of-range\]/m);
  const dense = await muster("serve", "--data-parallel-size", "2", "--max-size", "3");
  assert.equal(dense.code, 2);
  assert.match(dense.err, /^muster: --max-size \(3\): .* Add --moe .*\[elastic-wrong\]/m);
});

test("a configuration file: flags win, unknown settings are refused with the nearest name", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "muster-cli-")), "cluster.json");
  writeFileSync(file, JSON.stringify({ dataParallelSise: 2 }));
  const { code, err } = await muster("serve", "--config", file);
  assert.equal(code, 2);
  assert.match(
    err,
    /dataParallelSise \(2\): there is no such setting\. Did you mean dataParallelSize\?/,
  );
});

test("a file that is not there is named", async () => {
  const { code, err } = await muster("serve", "--config", "/nowhere.json");
  assert.equal(code, 2);
  assert.match(err, /--config \/nowhere\.json: .*ENOENT/);
});

test("--help lists the commands", async () => {
  const { code, out } = await muster("--help");
  assert.equal(code, 0);
  for (const command of ["demo", "serve", "engine", "chart"]) {
    assert.match(out, new RegExp(`^ {2}${command} `, "m"));
  }
  assert.doesNotMatch(out, /keeper/, "what nobody types is hidden");
});

test("an address that cannot be one is refused before anything is started", async () => {
  for (const address of ["here", "99999", "127.0.0.1:x"]) {
    const { code, out, err } = await muster("serve", "--http", address);
    assert.equal(code, 2);
    assert.equal(out, "");
    assert.match(err, /^muster: --http \S+: it must be host:port, or a port of this machine/);
  }
});

test("a page's port that is taken ends what was started, and says so", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const { port } = taken.address() as AddressInfo;
  for (const flag of ["--console", "--http"]) {
    const served = new Muster(["serve", "--launch", "reference", flag, String(port)]);
    const { code, out, err } = await served.ended;
    assert.equal(code, 1);
    assert.match(
      err,
      new RegExp(`cannot listen on 127\\.0\\.0\\.1:${port}: something listens there already`),
    );
    assert.match(out, /none is left/);
    assert.deepEqual(descendants(served.child.pid!), []);
  }
  await new Promise((resolve) => taken.close(resolve));
});

test("the cluster goes on when nobody reads what it says, and other commands end without a word", async () => {
  for (const command of [["serve", "--launch", "reference", "--once"], ["check", "--list"]]) {
    const run = new Muster(command);
    run.child.stdout!.destroy();
    const { code, err } = await run.ended;
    assert.deepEqual([code, err], [0, ""]);
  }
});

test("a run that failed or was stopped is over: its journal begins no other", async () => {
  const journal = join(mkdtempSync(join(tmpdir(), "muster-cli-")), "run");
  const serve = ["serve", "--data-parallel-size", "2", "--journal", journal];
  const failing = [...serve, "--connect-limit", "1ms"];
  const first = await muster(...failing);
  assert.equal(first.code, 1);
  assert.doesNotMatch(first.err, /before this start/);
  const again = await muster(...failing);
  assert.equal(again.code, 1);
  assert.match(
    again.err,
    /^muster: the run in \S+ failed \(\S+\) before this start, and nothing was started: begin anew with --anew/m,
  );

  const other = [...serve.slice(0, -1), `${journal}-2`];
  const stopped = new Muster(other);
  await stopped.said(/cluster forming/);
  stopped.kill("SIGINT");
  assert.equal((await stopped.ended).code, 130, "it had not formed up");
  const { code, err } = await muster(...other);
  assert.equal(code, 2);
  assert.match(err, /was stopped before this start, and nothing was started/);
  const { out } = await muster("log", "show", `${journal}-2`, "--type", "stop", "--json");
  assert.equal(out.trim().split("\n").length, 1, "it was stopped once");
});

test("a coordinator that goes away before it has answered is not one that is not there", async () => {
  const server = createServer((socket) => void socket.once("data", () => socket.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { code, err } = await muster("scale", "3", "--url", url);
  assert.equal(code, 1);
  assert.match(
    err,
    /^muster: the coordinator at \S+ went away before it answered .*: what was asked for may go on/,
  );
  await new Promise((resolve) => server.close(resolve));
  const wrong = await muster("status", "--url", "here");
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /^muster: --url here: it must be an address such as/);
});
