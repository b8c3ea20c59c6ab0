/** Starts the Python peers of the interop tests, in the environment that `setup.sh` made. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import process from "node:process";

export const PYTHON = ".venv/bin/python";

/** Why the interop tests cannot run here, or false. */
export const missing: string | false = existsSync(PYTHON)
  ? false
  : `${PYTHON} is missing: run test/interop/setup.sh`;

/** Makes torch's reverse name lookups numeric; made by `setup.sh` where there is a C compiler. */
const SHIM = ".venv/numeric-names.so";
// A resolver that does not answer costs torch five seconds a connection, for names that only its logs use.
const ENVIRONMENT = {
  RES_OPTIONS: "timeout:1 attempts:1",
  OMP_NUM_THREADS: "1",
  ...(existsSync(SHIM) ? { LD_PRELOAD: resolve(SHIM) } : {}),
};

export interface Peer {
  readonly process: ChildProcess;
  /** The first line that it prints. */
  readonly firstLine: Promise<string>;
  /** Everything that it prints, when it has ended well; else its errors. */
  readonly output: Promise<string>;
  /** Ends it: its input is closed, and it is killed if that is not enough. */
  stop(): Promise<void>;
}

/** Starts one of `test/interop/peers`. */
export function peer(script: string, ...args: (string | number)[]): Peer {
  const child = spawn(PYTHON, [`test/interop/peers/${script}`, ...args.map(String)], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...ENVIRONMENT },
  });
  let out = "";
  let errors = "";
  child.stdin.on("error", () => {});
  child.stderr.on("data", (chunk) => errors += chunk);
  const ended = new Promise<number | null>((done) => child.on("close", done));
  const firstLine = new Promise<string>((found, reject) => {
    child.stdout.on("data", (chunk) => {
      out += chunk;
      if (out.includes("\n")) found(out.slice(0, out.indexOf("\n")));
    });
    ended.then((code) => reject(new Error(`${script} ended with ${code}: ${errors.slice(-2000)}`)));
  });
  const output = ended.then((code) => {
    if (code === 0) return out;
    throw new Error(`${script} ${args.join(" ")} ended with ${code}: ${errors.slice(-3000)}`);
  });
  // Each is looked at by some tests only.
  firstLine.catch(() => {});
  output.catch(() => {});
  return {
    process: child,
    firstLine,
    output,
    stop: async () => {
      child.stdin.end();
      const kill = setTimeout(() => {
        if (child.exitCode === null && child.signalCode === null) {
          process.kill(child.pid!, "SIGKILL");
        }
      }, 2_000);
      await ended;
      clearTimeout(kill);
    },
  };
}
