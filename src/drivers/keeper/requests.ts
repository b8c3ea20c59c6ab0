import { constants } from "node:os";
import { isAbsolute } from "node:path";
import { type KeeperCommand, type KeeperCommands, Refused } from "./protocol.ts";

/** A request that was read and checked. */
export interface KeeperRequest {
  do: KeeperCommand;
  ask: KeeperCommands[KeeperCommand]["ask"];
}

/** Reads one request. @throws Refused `bad-request` that says which member is wrong. */
export function readRequest(message: unknown): KeeperRequest {
  const ask = object(message, "the request");
  const command = ask.do;
  if (typeof command !== "string" || !Object.hasOwn(READERS, command)) {
    throw bad(`unknown command ${JSON.stringify(command)}`);
  }
  return {
    do: command as KeeperCommand,
    ask: READERS[command as KeeperCommand](ask) as KeeperRequest["ask"],
  };
}

type Fields = Record<string, unknown>;

const READERS: { [K in KeeperCommand]: (m: Fields) => KeeperCommands[K]["ask"] } = {
  hello: (m) => ({
    token: text(m, "token"),
    fence: count(m, "fence"),
    leaseMs: count(m, "leaseMs"),
    protocol: count(m, "protocol"),
    ...(m.heartbeatMs === undefined ? {} : { heartbeatMs: atLeast(100, count(m, "heartbeatMs")) }),
  }),
  spawn: (m) => {
    const launch = {
      id: text(m, "id"),
      argv: texts(m, "argv"),
      env: environment(m, "env"),
      cwd: path(m, "cwd"),
      log: path(m, "log"),
      ...(m.note === undefined ? {} : { note: text(m, "note") }),
      ...(m.maxLogBytes === undefined ? {} : { maxLogBytes: count(m, "maxLogBytes") }),
    };
    if (launch.argv.length === 0 || launch.argv[0] === "") throw bad("argv names no program");
    return launch;
  },
  signal: (m) => {
    const signal = text(m, "signal");
    if (!Object.hasOwn(constants.signals, signal)) throw bad(`"${signal}" is no signal here`);
    const scope = m.scope ?? "group";
    if (scope !== "group" && scope !== "leader") throw bad(`scope must be "group" or "leader"`);
    return { id: text(m, "id"), signal, scope };
  },
  stop: (m) => ({ id: text(m, "id"), deadlineMs: count(m, "deadlineMs") }),
  list: () => ({}),
  tail: (m) => ({ id: text(m, "id"), lines: count(m, "lines") }),
  lease: (m) => ({ ms: count(m, "ms") }),
  ping: () => ({}),
  ack: (m) => ({ seq: count(m, "seq") }),
  "service-start": (m) => ({
    id: text(m, "id"),
    kind: text(m, "kind"),
    options: m.options ?? null,
  }),
  "service-stop": (m) => ({ id: text(m, "id") }),
  "host-stop": (m) => ({ deadlineMs: count(m, "deadlineMs") }),
};

const bad = (message: string): Refused => new Refused("bad-request", message);

function object(value: unknown, name: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw bad(`${name} must be an object`);
  }
  return value as Fields;
}

function text(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw bad(`${name} must be a string`);
  if (value.includes("\0")) throw bad(`${name} holds a zero byte`);
  return value;
}

function texts(fields: Fields, name: string): string[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw bad(`${name} must be a list of strings`);
  return value.map((item: unknown, at) => text({ [`${name}[${at}]`]: item }, `${name}[${at}]`));
}

function environment(fields: Fields, name: string): Record<string, string> {
  const value = object(fields[name], name);
  for (const key of Object.keys(value)) {
    if (key === "" || key.includes("=") || key.includes("\0")) {
      throw bad(`${name} has an impossible name ${JSON.stringify(key)}`);
    }
    text(value, key);
  }
  return value as Record<string, string>;
}

function path(fields: Fields, name: string): string {
  const value = text(fields, name);
  if (!isAbsolute(value)) throw bad(`${name} must be an absolute path, not "${value}"`);
  return value;
}

function count(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw bad(`${name} must be a whole number from 0, not ${JSON.stringify(value)}`);
  }
  return value;
}

function atLeast(least: number, value: number): number {
  if (value < least) throw bad(`heartbeatMs must be at least ${least}`);
  return value;
}
