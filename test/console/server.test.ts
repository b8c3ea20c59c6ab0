import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import {
  ConsoleError,
  consoleHandler,
  emptySource,
  remoteSource,
  startConsole,
  storeSource,
} from "../../src/console/mod.ts";
import { openConsole } from "../../src/cli/commands/console.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { formedRun, formingRun } from "./fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "muster-console-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

let directories = 0;
function journal(text: string): { directory: string; file: string } {
  const directory = mkdtempSync(join(folder, `${directories++}-`));
  const file = join(directory, "000001-000000000001.jsonl");
  writeFileSync(file, text);
  return { directory, file };
}

/** Reads server-sent events until a condition holds. */
async function eventsUntil(
  url: string,
  headers: Record<string, string>,
  done: (ids: number[], text: string) => boolean,
): Promise<{ ids: number[]; text: string }> {
  const abort = new AbortController();
  const response = await fetch(url, { headers, signal: abort.signal });
  const decoder = new TextDecoder();
  let text = "";
  let ids: number[] = [];
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk, { stream: true });
    ids = [...text.matchAll(/^id: (\d+)$/gm)].map((m) => Number(m[1]));
    if (done(ids, text)) break;
  }
  abort.abort();
  return { ids, text };
}

test("a journal is handed out whole, from a number on, and its new records follow by themselves", async () => {
  const run = formingRun();
  const { directory, file } = journal(run.text());
  const source = storeSource(new FileStore(directory), { pollMs: 20 });
  const server = await startConsole({ source });
  try {
    const all = (await (await fetch(`${server.url}api/journal`)).text()).trim().split("\n");
    assert.equal(all.length, 21);
    assert.equal(JSON.parse(all[0]!).header.run, "6f1a7c1e");
    assert.deepEqual(all.slice(1).map((line) => line + "\n"), run.lines);
    const some = (await (await fetch(`${server.url}api/journal?from=19`)).text()).trim().split(
      "\n",
    );
    assert.deepEqual(some.slice(1).map((line) => JSON.parse(line).seq), [19, 20]);
    const before = run.lines.length;
    run.ready(4);
    const following = eventsUntil(
      `${server.url}api/events`,
      { "last-event-id": "18" },
      (ids) => ids.includes(21),
    );
    appendFileSync(file, run.lines.slice(before).join(""));
    assert.deepEqual((await following).ids, [19, 20, 21]);
  } finally {
    await server.close();
  }
});

test("another run in the same place is another run: the head says so", async () => {
  const { directory, file } = journal(formingRun().text());
  const source = storeSource(new FileStore(directory), { pollMs: 20 });
  assert.equal((await source.head())?.header.run, "6f1a7c1e");
  const other = formedRun(2);
  writeFileSync(file, other.text().replace("6f1a7c1e", "0badcafe").split("\n").slice(1).join("\n"));
  await assert.rejects(async () => await source.head());
});

test("the page is one document with two assets, under a policy of self only, and small", async () => {
  const server = await startConsole({ source: emptySource });
  try {
    let compressed = 0;
    for (const path of ["", "page.js", "page.css"]) {
      const response = await fetch(server.url + path);
      assert.equal(response.status, 200);
      const policy = response.headers.get("content-security-policy")!;
      assert.match(
        policy,
        /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/,
      );
      assert.equal(response.headers.get("content-encoding"), "gzip");
      const text = await response.text();
      assert.ok(text.length > 0);
      assert.doesNotMatch(text.replaceAll("http://www.w3.org/", ""), /(src|href)="https?:/);
      const { gzipSync } = await import("node:zlib");
      compressed += gzipSync(text).length;
    }
    assert.ok(compressed < 250_000, `${compressed} bytes compressed`);
    const charts = await (await fetch(`${server.url}api/charts`)).json() as Record<string, unknown>;
    assert.ok("engine" in charts && "startup" in charts);
    assert.equal((await fetch(`${server.url}nothing`)).status, 404);
    assert.equal(await (await fetch(`${server.url}api/journal`)).text(), "null\n");
  } finally {
    await server.close();
  }
});

test("commands need the token, foreign names and origins are refused, an exposed console tells nothing without it", async () => {
  const asked: unknown[] = [];
  const options = {
    source: emptySource,
    command: (command: unknown) => {
      asked.push(command);
      return Promise.resolve({ text: "aborting" });
    },
  };
  const local = consoleHandler({ ...options, access: { token: "secret", exposed: false } });
  const open = consoleHandler({ ...options, access: { token: "secret", exposed: true } });
  const request = (path: string, headers: Record<string, string> = {}, body?: string): Request =>
    new Request(
      `http://127.0.0.1:1234${path}`,
      body === undefined ? { headers } : { method: "POST", headers, body },
    );
  const bearer = { authorization: "Bearer secret" };
  const abort = JSON.stringify({ type: "abort", operation: "operation/1" });
  assert.equal((await local(request("/api/info"))).status, 200);
  assert.equal((await local(request("/api/info", { host: "evil.example" }))).status, 403);
  assert.equal((await local(request("/api/info", { origin: "http://evil.example" }))).status, 403);
  assert.equal((await local(request("/api/command", {}, abort))).status, 401);
  assert.equal(
    (await local(request("/api/command", { authorization: "Bearer wrong" }, abort))).status,
    401,
  );
  assert.deepEqual(asked, []);
  const answer = await local(request("/api/command", bearer, abort));
  assert.deepEqual([answer.status, await answer.json()], [200, { text: "aborting" }]);
  assert.deepEqual(asked, [{ type: "abort", operation: "operation/1" }]);
  assert.equal((await local(request("/api/command", bearer, "not json"))).status, 400);
  assert.equal((await open(request("/"))).status, 200);
  assert.equal((await open(request("/api/info"))).status, 401);
  assert.equal((await open(request("/api/info", { ...bearer, host: "gpu-17:1234" }))).status, 200);
});

test("an address that is taken is refused with the reason", async () => {
  const server = await startConsole({ source: emptySource });
  try {
    const port = Number(new URL(server.url).port);
    await assert.rejects(startConsole({ source: emptySource, port }), (error) => {
      assert.ok(error instanceof ConsoleError && error.code === "console.listen");
      assert.match(error.message, /something listens there already/);
      return true;
    });
  } finally {
    await server.close();
  }
});

test("a model under exploration is walked by path; a choice that there is not is refused", async () => {
  const state = (path: readonly number[]) => {
    if (path.some((n) => n > 1)) throw new RangeError("there is no choice 2 after step 1");
    return { path, steps: [], parties: [], enabled: [], violated: [], terminal: true };
  };
  const handler = consoleHandler({
    source: emptySource,
    access: { token: "t", exposed: false },
    explorer: { name: "two-phase commit", summary: "288 states", traces: [], at: state },
  });
  const get = async (path: string) => {
    const response = await handler(new Request(`http://localhost${path}`));
    return [response.status, await response.json()];
  };
  assert.deepEqual(await get("/api/explore?path=0.1"), [200, state([0, 1])]);
  assert.deepEqual(await get("/api/explore?path=0.2"), [400, {
    error: "there is no choice 2 after step 1",
  }]);
});

test("a console of a console: the same records, and new ones follow", async () => {
  const run = formingRun();
  const { directory, file } = journal(run.text());
  const source = storeSource(new FileStore(directory), { pollMs: 20 });
  const near = await startConsole({ source });
  const remote = remoteSource(near.address);
  try {
    assert.equal((await remote.head())?.header.run, "6f1a7c1e");
    const before = run.lines.length;
    run.ready(4);
    await new Promise<void>((resolve) => {
      const stop = remote.watch(async () => {
        for await (const { seq } of remote.lines(21)) if (seq === 21) resolve(stop());
      });
      appendFileSync(file, run.lines.slice(before).join(""));
    });
    const seqs: number[] = [];
    for await (const { seq } of remote.lines(19)) seqs.push(seq);
    assert.deepEqual(seqs, [19, 20, 21]);
  } finally {
    await near.close();
  }
  await assert.rejects(async () => await remoteSource(near.url).head());
});

test("muster console opens a directory, a single file, and refuses what is not there", async () => {
  const { directory, file } = journal(formingRun().text());
  const flags = { host: "127.0.0.1", port: 0, live: true };
  const outer = mkdtempSync(join(folder, "outer-"));
  renameSync(directory, join(outer, "journal"));
  const moved = join(outer, "journal");
  for (const path of [outer, moved, join(moved, basename(file))]) {
    const server = await openConsole(path, flags);
    const info = await (await fetch(`${server.url}api/info`)).json() as { run: string };
    assert.equal(info.run, "6f1a7c1e");
    assert.match(server.address, /#token=[0-9a-f]{32}$/);
    await server.close();
  }
  await assert.rejects(openConsole(join(outer, "nowhere"), flags), /there is no journal at/);
});
