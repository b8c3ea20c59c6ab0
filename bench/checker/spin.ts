/** Two-phase commit in SPIN, for comparison: the model in Promela, the verifier compiled and run. Needs `spin` and `gcc`. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Count } from "./packed.ts";

const ranks = (managers: number): number[] => Array.from({ length: managers }, (_, r) => r);

const declarations = (managers: number): string => `
byte rm[${managers}];
byte tm;
bool noted[${managers}];
bool sent[${managers}];
bool commit, abort_;
`;

const managerMoves = (r: string): string => `
  :: atomic { rm[${r}] == 0 -> rm[${r}] = 1; sent[${r}] = true }
  :: atomic { rm[${r}] == 0 -> rm[${r}] = 3 }
  :: atomic { rm[${r}] < 2 && commit -> rm[${r}] = 2 }
  :: atomic { rm[${r}] < 2 && abort_ -> rm[${r}] = 3 }`;

const coordinatorMoves = (managers: number): string =>
  ranks(managers).map((r) => `
  :: atomic { tm == 0 && sent[${r}] && !noted[${r}] -> noted[${r}] = true }`).join("") + `
  :: atomic { tm == 0 && ${
    ranks(managers).map((r) => `noted[${r}]`).join(" && ")
  } -> tm = 1; commit = true }
  :: atomic { tm == 0 -> tm = 2; abort_ = true }`;

/** As one would write it: a process for each manager and one for the coordinator. */
const asProcesses = (managers: number): string =>
  `${declarations(managers)}
active [${managers}] proctype manager() { do${managerMoves("_pid")} od }
active proctype coordinator() { do${coordinatorMoves(managers)} od }
`;

/** As fast as SPIN can be made: one process that does everything. */
const asOneLoop = (managers: number): string =>
  `${declarations(managers)}
active proctype world() { do${ranks(managers).map((r) => managerMoves(String(r))).join("")}${
    coordinatorMoves(managers)
  } od }
`;

/** A way to use SPIN: how the model is written, and how the verifier is compiled and run. None reduces the order of steps. */
export interface SpinUse {
  readonly name: string;
  readonly form: (managers: number) => string;
  readonly compiler: readonly string[];
  readonly verifier: readonly string[];
}

// -E and -c0: a state without successors is no error here, and nothing else ends the search. -m: room for the depth-first stack.
const ALWAYS = ["-E", "-c0", "-m1000000", "-n"];

export const spinUses: readonly SpinUse[] = [
  {
    name: "untuned",
    form: asProcesses,
    compiler: ["-O2", "-DNOREDUCE", "-DMEMLIM=4000"],
    verifier: ALWAYS,
  },
  {
    name: "tuned",
    form: asProcesses,
    compiler: ["-O3", "-march=native", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=4000"],
    verifier: ALWAYS,
  },
  {
    name: "tuned, one loop",
    form: asOneLoop,
    compiler: ["-O3", "-march=native", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=4000"],
    verifier: ALWAYS,
  },
];

/** The count, or in words why there is none: SPIN or a C compiler is missing. */
export function spinTwoPhaseCommit(
  managers: number,
  { form, compiler, verifier }: SpinUse,
): Count & { megabytes: number } | string {
  for (const tool of ["spin", "gcc"]) {
    if (spawnSync(tool, [tool === "spin" ? "-V" : "--version"]).error !== undefined) {
      return `${tool} is not installed`;
    }
  }
  const folder = mkdtempSync(join(tmpdir(), "muster-spin-"));
  try {
    writeFileSync(join(folder, "m.pml"), form(managers));
    const made = spawnSync("spin", ["-a", "m.pml"], { cwd: folder, encoding: "utf8" });
    if (made.status !== 0) return `spin: ${made.stdout}${made.stderr}`;
    const flags = [...compiler, "-o", "pan", "pan.c"];
    const compiled = spawnSync("gcc", flags, { cwd: folder, encoding: "utf8" });
    if (compiled.status !== 0) return `gcc: ${compiled.stderr}`;
    const began = performance.now();
    const ran = spawnSync("./pan", verifier, { cwd: folder, encoding: "utf8" });
    const seconds = (performance.now() - began) / 1000;
    const number = (pattern: RegExp): number => Number(pattern.exec(ran.stdout)?.[1] ?? NaN);
    return {
      states: number(/([\d.e+]+) states, stored/),
      generated: number(/([\d.e+]+) transitions/),
      seconds,
      megabytes: number(/([\d.]+)\s+total actual memory usage/),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
