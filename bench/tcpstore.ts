/**
 * Our TCPStore server beside torch's libuv and legacy servers: under torch's own client, and under ours. Every row is
 * measured in rounds, each round on all servers in turn, so that a slow moment of the machine hits all of them; the
 * ratios are medians over the rounds of what the other server took by what ours took.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { TcpStoreClient } from "../src/drivers/tcpstore/mod.ts";
import type { BenchTable } from "./run.ts";

export const name = "tcpstore";

/** Made by `test/interop/setup.sh torch`. */
const PYTHON = ".venv/bin/python";
const SHIM = ".venv/numeric-names.so";
const ROUNDS = 11;
const IDLE = 1_000;
type Server = "ours" | "libuv" | "legacy";
const SERVERS: readonly Server[] = ["ours", "libuv", "legacy"];
/** Microseconds per operation: row, server, round. */
type Report = Record<string, Record<Server, number[]>>;

export async function run(): Promise<BenchTable[]> {
  if (!existsSync(PYTHON)) {
    const why = "torch is not installed: run test/interop/setup.sh torch";
    return [{ title: "TCPStore servers", columns: ["not measured"], rows: [[why]] }];
  }
  const children: ChildProcess[] = [];
  try {
    const shim = existsSync(SHIM);
    const environment = { ...process.env, ...(shim ? { LD_PRELOAD: resolve(SHIM) } : {}) };
    const start = (file: string, ...args: string[]): Promise<number> => {
      const child = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"], env: environment });
      children.push(child);
      return firstLine(child).then(Number);
    };
    const [ours, libuv, legacy] = await Promise.all([
      start(process.execPath, ...moduleFlags(), "bench/tcpstore/server.ts"),
      start(PYTHON, "test/interop/peers/tcpstore_server.py", "libuv"),
      start(PYTHON, "test/interop/peers/tcpstore_server.py", "legacy"),
    ]);
    const ports = { ours, libuv, legacy };
    const bench = spawn(
      PYTHON,
      ["test/interop/peers/tcpstore_bench.py", JSON.stringify(ports), String(ROUNDS)],
      { stdio: ["ignore", "pipe", "inherit"], env: environment },
    );
    children.push(bench);
    const theirs = JSON.parse(await firstLine(bench)) as Report;
    const own = await ourClient(ports);
    const dns = shim
      ? "Torch's reverse name lookups are forced numeric."
      : "There was no C compiler: torch looks up the name of every peer, and a slow resolver is in its numbers.";
    return [
      tableOf("TCPStore servers under torch's own client", theirs, [
        `torch 2.13.0; 8 clients are 8 processes; after thousands of operations to warm up. ${dns}`,
        ...shortfalls(theirs),
      ]),
      tableOf("TCPStore servers under our client", own, [
        "8 clients are 8 connections of one process.",
        ...shortfalls(own),
      ]),
    ];
  } finally {
    for (const child of children) {
      child.stdin?.end();
      if (child.exitCode === null && child.signalCode === null) process.kill(child.pid!, "SIGTERM");
    }
  }
}

// ---- tables ----

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1]!;
const ratio = (row: Record<Server, number[]>, other: Server): number =>
  median(row.ours.map((taken, round) => row[other][round]! / taken));
const times = (value: number): string => `${value.toFixed(2)}x`;

function tableOf(title: string, report: Report, notes: string[]): BenchTable {
  return {
    title: `${title} (microseconds per operation, medians of ${ROUNDS} rounds)`,
    columns: ["", "ours", "torch libuv", "torch legacy", "as fast as libuv", "as fast as legacy"],
    rows: Object.entries(report).map(([name, row]) => [
      name,
      ...SERVERS.map((server) => Number(median(row[server]).toFixed(1))),
      times(ratio(row, "libuv")),
      times(ratio(row, "legacy")),
    ]),
    notes,
  };
}

/** Where ours is not what it is meant to be: as fast as libuv's, and ten times legacy's among 1,000 idle. */
function shortfalls(report: Report): string[] {
  const short = Object.entries(report)
    .filter(([, row]) => ratio(row, "libuv") < 1)
    .map(([name, row]) => `${name} ${times(ratio(row, "libuv"))}`);
  const idle = Object.entries(report).filter(([name]) => name.includes("idle"))
    .filter(([, row]) => ratio(row, "legacy") < 10)
    .map(([name, row]) => `${name} ${times(ratio(row, "legacy"))} of legacy's`);
  return [
    short.length === 0
      ? "Ours is at least as fast as torch's libuv server in every row."
      : `Slower than torch's libuv server: ${short.join(", ")}.`,
    ...idle.map((each) => `Less than ten times legacy's: ${each}.`),
  ];
}

// ---- our client ----

async function ourClient(ports: Record<Server, number>): Promise<Report> {
  const report: Report = {};
  const stores = await each((server) => open(ports[server]));
  const others = await each((server) => open(ports[server]));
  const keys = Array.from({ length: 64 }, (_, i) => `check/${i}`);
  for (const server of SERVERS) {
    await stores[server].multiSet(keys.map((key) => [key, "v"]), { confirm: true });
  }
  const pair = (store: TcpStoreClient) => async (): Promise<void> => {
    const written = store.set("k", "value");
    await store.get("k");
    await written;
  };
  const measure = async (
    name: string,
    operation: (server: Server) => () => Promise<unknown>,
    count: number,
    warm: number = 10 * count,
  ): Promise<void> => {
    const row: Record<Server, number[]> = { ours: [], libuv: [], legacy: [] };
    const operations = await each((server) => operation(server));
    for (const server of SERVERS) await timed(operations[server], warm);
    for (let round = 0; round < ROUNDS; round++) {
      for (let turn = 0; turn < SERVERS.length; turn++) {
        const server = SERVERS[(turn + round) % SERVERS.length]!;
        row[server].push(await timed(operations[server], count));
      }
    }
    report[name] = row;
  };
  await measure("set + get", (server) => pair(stores[server]), 300);
  await measure("add", (server) => () => stores[server].add("n", 1), 600);
  await measure("check of 64 keys", (server) => () => stores[server].check(keys), 200);

  let told = 0;
  await measure(
    "a wait that another client satisfies",
    (server) => async () => {
      const key = `told/${told++}`;
      const waiting = others[server].wait([key]);
      await stores[server].set(key, "");
      await waiting;
    },
    100,
    3_000,
  );

  const eight = await each((server) =>
    Promise.all(Array.from({ length: 8 }, () => open(ports[server])))
  );
  await measure(
    "eight clients, set + get",
    (server) => () => Promise.all(eight[server].map((store) => pair(store)())),
    100,
  );
  for (const values of Object.values(report["eight clients, set + get"]!)) {
    values.forEach((value, i) => values[i] = value / 8);
  }

  const idle: TcpStoreClient[] = [];
  await measure(
    "a connect",
    (server) => async () => {
      idle.push(await open(ports[server]));
    },
    Math.floor(IDLE / (ROUNDS + 3)),
    Math.floor(IDLE / (ROUNDS + 3)),
  );
  // What is missing to 1,000 each.
  const bare: Socket[] = [];
  for (const server of SERVERS) {
    const have = idle.length / SERVERS.length;
    for (let i = have; i < IDLE; i++) bare.push(await silent(ports[server]));
  }
  await measure("set + get, one among 1,000 idle", (server) => pair(stores[server]), 100);
  for (const store of [...idle, ...SERVERS.flatMap((s) => [stores[s], others[s], ...eight[s]])]) {
    store.close();
  }
  for (const socket of bare) socket.destroy();
  return report;
}

const open = (port: number): Promise<TcpStoreClient> =>
  TcpStoreClient.connect({ host: "127.0.0.1", port });

async function each<T>(make: (server: Server) => T | Promise<T>): Promise<Record<Server, T>> {
  return { ours: await make("ours"), libuv: await make("libuv"), legacy: await make("legacy") };
}

async function timed(operation: () => Promise<unknown>, count: number): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < count; i++) await operation();
  return (performance.now() - start) / Math.max(1, count) * 1000;
}

/** A connection that was opened properly and says nothing more. */
function silent(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", reject);
    socket.once("data", () => resolve(socket.unref()));
    socket.write("\x00\xce\xf7\x85\x3c\x0d\x00\x00\x00\x00", "latin1");
  });
}

// ---- processes ----

const moduleFlags = (): string[] =>
  "Deno" in globalThis ? ["run", "-A", "--no-check"] : ["--import", "tsx"];

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout!.on("data", (chunk) => {
      text += chunk;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
    child.on("error", reject);
    child.on("close", (code) => reject(new Error(`${child.spawnfile} ended with ${code}`)));
  });
}
