import { promises as fs } from "node:fs";
import { lookup } from "node:dns/promises";
import { connect, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import type {
  DirectoryFact,
  Facts,
  PortFact,
  Questions,
  Resolution,
  SocketFact,
} from "../planning/mod.ts";

/** How long one name or one socket may take to answer. */
const DEADLINE_MS = 3_000;
/** A directory may be shared with others: only sockets named like Muster's and vLLM's count, and not endlessly many. */
const OURS = /^(r\d+-[a-z0-9]+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;
const MOST_SOCKETS = 256;

/**
 * Asks the world what a plan wants to know. Starts nothing and changes nothing: a port is bound and let go, a
 * socket is dialled and let go. What cannot be asked is left unknown; it never throws.
 */
export async function probe(questions: Questions): Promise<Facts> {
  const [resolutions, ports, directories, devices, vllm] = await Promise.all([
    Promise.all(questions.names.map(async (name) => [name, await resolve(name)] as const)),
    Promise.all(questions.ports.map(({ host, port }) => tryPort(host, port))),
    Promise.all(questions.directories.map(lookInto)),
    countDevices(),
    onPath("vllm"),
  ]);
  return {
    interfaces: Object.values(networkInterfaces()).flatMap((i) => i ?? []).map((i) => i.address),
    resolutions: Object.fromEntries(resolutions),
    ports,
    directories,
    devices,
    visible: process.env[questions.variable] ?? null,
    vllm,
  };
}

async function resolve(name: string): Promise<Resolution> {
  try {
    const records = await within(lookup(name, { all: true }));
    return { addresses: [...new Set(records.map((r) => r.address))] };
  } catch (error) {
    return { addresses: [], error: (error as NodeJS.ErrnoException).code ?? String(error) };
  }
}

function within<T>(promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })),
      DEADLINE_MS,
    );
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function tryPort(host: string, port: number): Promise<PortFact> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      const state = error.code === "EADDRINUSE"
        ? "in-use"
        : error.code === "EACCES"
        ? "denied"
        : "not-here";
      done({ host, port, state });
    });
    server.listen({ port, ...(host === "*" ? {} : { host }), exclusive: true }, () => {
      server.close(() => done({ host, port, state: "free" }));
    });
  });
}

async function lookInto(path: string): Promise<DirectoryFact> {
  let names: string[];
  try {
    names = await fs.readdir(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const state = code === "ENOENT"
      ? "missing"
      : code === "ENOTDIR"
      ? "not-a-directory"
      : "not-writable";
    return { path, state, sockets: [] };
  }
  const writable = await fs.access(path, fs.constants.W_OK).then(() => true, () => false);
  const paths = names.filter((name) => OURS.test(name)).slice(0, MOST_SOCKETS)
    .map((name) => join(path, name));
  const sockets = await Promise.all(paths.map(async (p) => await isSocket(p) ? [p] : []));
  return {
    path,
    state: writable ? "writable" : "not-writable",
    sockets: await Promise.all(sockets.flat().map(trySocket)),
  };
}

/** By `lstat`: on Deno a directory's entries do not tell sockets. */
const isSocket = (path: string): Promise<boolean> =>
  fs.lstat(path).then((stats) => stats.isSocket(), () => false);

function trySocket(path: string): Promise<SocketFact> {
  return new Promise((done) => {
    const socket = connect(path);
    const answer = (state: SocketFact["state"]) => {
      clearTimeout(timer);
      socket.destroy();
      done({ path, state });
    };
    const timer = setTimeout(() => answer("live"), DEADLINE_MS);
    socket.once("connect", () => answer("live"));
    socket.once("error", () => answer("stale"));
  });
}

/** NVIDIA's device files, where there are any; a host without them may still have other devices. */
async function countDevices(): Promise<number | null> {
  const names = await fs.readdir("/dev").catch(() => []);
  const count = names.filter((name) => /^nvidia\d+$/.test(name)).length;
  return count > 0 ? count : null;
}

async function onPath(command: string): Promise<string | null> {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter).filter(Boolean)) {
    const path = join(directory, command);
    if (await fs.access(path, fs.constants.X_OK).then(() => true, () => false)) return path;
  }
  return null;
}
