import { Command } from "commander";
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { after, before, test } from "node:test";
import { storeCommand } from "../../src/cli/commands/store.ts";

interface Ran {
  readonly out: string;
  readonly err: string;
  readonly code: number | null;
}

/** Runs `muster store ...` in this process. */
async function run(...argv: string[]): Promise<Ran> {
  let [out, err] = ["", ""];
  const program = new Command("muster").exitOverride().configureOutput({
    writeOut: (text) => out += text,
    writeErr: (text) => err += text,
  });
  storeCommand(program);
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await program.parseAsync(["store", ...argv], { from: "user" });
    return { out, err, code: Number(process.exitCode) };
  } catch (error) {
    return { out, err, code: (error as { exitCode: number }).exitCode };
  } finally {
    process.exitCode = before;
  }
}

let server: ChildProcess;
let serverEnded: Promise<Ran>;
let address = "";

// The server is a process of its own, on the runtime that runs the test.
before(async () => {
  const runtime = "Deno" in globalThis ? ["run", "-A", "--no-check"] : ["--import", "tsx"];
  const argv = ["src/cli/main.ts", "store", "--host", "127.0.0.1", "--port", "0"];
  server = spawn(process.execPath, [...runtime, ...argv], { stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  serverEnded = new Promise((resolve) => server.on("close", (code) => resolve({ out, err, code })));
  server.stderr!.on("data", (chunk) => err += chunk);
  const line = await new Promise<string>((resolve, reject) => {
    server.stdout!.on("data", (chunk) => {
      out += chunk;
      resolve(out);
    });
    serverEnded.then(() => reject(new Error(err)));
  });
  address = /^TCPStore listening on (127\.0\.0\.1:\d+)$/m.exec(line)![1]!;
});

after(() => {
  if (server.exitCode === null && server.signalCode === null) process.kill(server.pid!, "SIGKILL");
});

test("set, get, keys and wait look into a running store", async () => {
  assert.deepEqual(await run("set", address, "greeting", "hällo"), { out: "", err: "", code: 0 });
  const bytes = await run("set", address, "bytes", "00ff", "--hex", "--prefix", "deep/er");
  assert.deepEqual(bytes, { out: "", err: "", code: 0 });
  assert.deepEqual(await run("get", address, "greeting"), { out: "hällo\n", err: "", code: 0 });
  assert.deepEqual(await run("get", address, "nothing"), {
    out: "",
    err: `muster store: there is no key "nothing" at ${address}\n`,
    code: 1,
  });
  const waiting = run("wait", address, "greeting", "bytes", "--timeout", "20s");
  await run("set", address, "bytes", "later");
  assert.deepEqual(await waiting, { out: "", err: "", code: 0 });
  assert.equal((await run("keys", address)).out, "bytes\ndeep/er/bytes\ngreeting\n");
  const within = await run("keys", address, "--prefix", "deep", "--values");
  assert.equal(within.out, "er/bytes\t0x00ff\n");
  const json = await run("get", address, "er/bytes", "--prefix", "deep", "--as", "json");
  assert.deepEqual(JSON.parse(json.out), { key: "er/bytes", hex: "00ff", text: null });
});

test("a wait in vain, a server that is not there and a question that is wrong say so", async () => {
  const waited = await run("wait", address, "never", "--timeout", "50ms");
  const nobody = await run("get", "127.0.0.1:1", "k");
  const wrong = await run("get", "localhost", "k");
  assert.equal(waited.code, 1);
  assert.match(
    waited.err,
    /^muster store: wait timeout after \d+ ms, keys: "never" \[wait-timeout\]\n$/,
  );
  assert.equal(nobody.code, 1);
  assert.match(
    nobody.err,
    /^muster store: no TCPStore at 127\.0\.0\.1:1 after 1 attempt .*\[connect-failed\]\n$/,
  );
  assert.notEqual(wrong.code, 0);
  assert.match(wrong.err, /HOST:PORT, \[IPv6\]:PORT, or PORT/);
});

test("the server ends on a signal, and says what it did", async () => {
  process.kill(server.pid!, "SIGTERM");
  const { out, code } = await serverEnded;
  assert.match(out, /^SIGTERM: \d+ requests of \d+ connections, 3 keys$/m);
  assert.equal(code, 0);
});
