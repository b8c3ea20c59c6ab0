import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import process from "node:process";
import { test } from "node:test";

/** The rooms of `src`, in the order in which they may know each other: a room imports from those above it only. */
const ROOMS = [
  "protocol",
  "planning",
  "kernel",
  "machines",
  "peers",
  "view",
  "journal",
  "checker",
  "charts",
  "drivers",
  "host",
  "service",
  "coordinator.ts",
  "testing",
  "mod.ts",
  "console",
  "cli",
];
/** Rooms that also run in a browser: no `node:` module, no driver. */
const PORTABLE = new Set(ROOMS.slice(0, ROOMS.indexOf("drivers")));
const PORTABLE_EXCEPT = ["journal/stores/"];

function* sources(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (/\.tsx?$/.test(entry.name)) yield path;
  }
}
const importsOf = (path: string): string[] =>
  [
    ...readFileSync(path, "utf8").matchAll(
      /^\s*(?:import|export)\b[^;"']*?["']([^"']+)["']|import\(\s*["']([^"']+)["']\s*\)/gm,
    ),
  ]
    .map((m) => (m[1] ?? m[2])!);
const roomOf = (path: string): string => path.replace(/^src\//, "").split("/")[0]!;

test("a room imports only from rooms above it", () => {
  const wrong: string[] = [];
  for (const path of sources("src")) {
    const room = ROOMS.indexOf(roomOf(path));
    if (room < 0) wrong.push(`${path}: room ${roomOf(path)} is not in the list of rooms`);
    for (const target of importsOf(path)) {
      if (!target.startsWith(".")) continue;
      const resolved = normalize(join(dirname(path), target));
      if (!resolved.startsWith("src/")) {
        if (!(resolved.startsWith("models/") && roomOf(path) === "cli")) {
          wrong.push(`${path} imports ${resolved}, which is outside src`);
        }
        continue;
      }
      if (ROOMS.indexOf(roomOf(resolved)) > room) wrong.push(`${path} imports ${resolved}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("everything down to charts runs in a browser: no node: module, no package that needs one", () => {
  const wrong: string[] = [];
  for (const path of sources("src")) {
    if (!PORTABLE.has(roomOf(path)) || PORTABLE_EXCEPT.some((x) => path.includes(x))) continue;
    for (const target of importsOf(path)) {
      if (/^(node:|zeromq|pino|hono|@hono)/.test(target)) wrong.push(`${path} imports ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("tests run from the top of the project", () => {
  assert.ok(readdirSync(process.cwd()).includes("deno.json"));
});
