/**
 * Inputs that real deployments met, by the numbers under which they are known here, and the test that replays each of them. Gaps in the
 * numbers mean nothing.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

/** Row, the file below `test/`, and how its test begins, or a part of how it does. */
const ROWS: readonly (readonly [row: number, file: string, title: string])[] = [
  // Start-up.
  [1, "view/reported-inputs", "case 1: HELLO and READY of four ranks in any order"],
  [2, "view/reported-inputs", "case 2: no HELLO of rank 3 before the deadline"],
  [3, "view/reported-inputs", "cases 3 and 10: HELLO, INIT, and then nothing"],
  [4, "cases/inputs", "READY(1) at 640 s with limit 600 s"],
  [5, "view/reported-inputs", "case 5: an engine that exits 1 before HELLO"],
  [7, "view/reported-inputs", "case 7: an exit whose code nobody knows"],
  [9, "cases/inputs", "Coordinator process exits during engine start: it is the front-end's own"],
  [10, "view/reported-inputs", "cases 3 and 10: HELLO, INIT, and then nothing"],
  [10, "e2e/heartbeat", "a remote engine that hangs while serving is found by its heartbeat"],
  [11, "cases/inputs", "Front-end worker times out while engines load"],
  [12, "cases/inputs", "Abort while engines are pre-READY"],
  [12, "e2e/form-up", "Ctrl-C stops cleanly"],
  [12, "drivers/keeper/keeper", "stop counts the strays that it found by mark"],
  [13, "e2e/hostile-start-up", "case 13: identities of 20 random bytes"],
  [17, "e2e/hostile-start-up", "cases 17 and 18: a remote HELLO with the wrong flags"],
  [18, "e2e/hostile-start-up", "cases 17 and 18: a remote HELLO with the wrong flags"],
  [18, "cases/inputs", "Remote HELLO headless=true in external/hybrid mode"],
  [20, "view/reported-inputs", "case 20: a rank that restarts says HELLO twice"],
  [22, "view/reported-inputs", "case 22: READY twice is no second count of blocks"],
  [23, "view/reported-inputs", "case 23: HELLO has no run id"],
  [24, "cases/inputs", "READY hash differs; head local=0, peer local=4"],
  [25, "view/reported-inputs", "cases 24 and 25: a hash that differs"],
  [26, "view/reported-inputs", "case 26: 10,000 and 7,000 blocks"],
  [28, "cases/inputs", "Two launches on one host choose ports at once x1000"],
  [28, "drivers/zmq/launches-at-once", "two launches at once, ${ROUNDS} times"],
  [30, "planning/topology-refusals", "a unix socket path of 107 bytes is planned, one of 108"],
  [30, "planning/preflight", "the lengths of socket paths: counted, and refused above 107 bytes"],
  // Devices and placement.
  [31, "planning/devices", "visible 0,1 with eight ranks is refused"],
  [31, "planning/devices", "MIG and GPU ids stay the strings that they are"],
  [31, "planning/devices", "an empty variable means no device, and is refused"],
  [31, "planning/devices", "the order of the variable is kept"],
  [32, "planning/preflight", "two external ranks on one host with the same devices are refused"],
  [33, "planning/preflight", "a head without devices: the ranks meet where rank 0 runs"],
  [34, "planning/placement/plan", "defect 5, A5, A10, A11: no device key"],
  [35, "planning/placement/plan", "resources of placement groups are not addresses"],
  [36, "planning/placement/properties", "property: exactly the asked number of ranks"],
  [37, "planning/placement/upstream", "compat upstream, P7 spans two nodes"],
  [38, "planning/placement/properties", "a node that joins after the snapshot changes nothing"],
  // Waves and loads.
  [39, "cases/inputs", "FIRST_REQ(wave 0) with all idle at wave 0"],
  [40, "machines/waves", "a wake-up with an older wave starts the current one and excludes nobody"],
  [42, "drivers/serving-engine", "paused, nobody is woken"],
  [43, "e2e/pause", "all ranks pause and resume together"],
  [45, "peers/front-end", "ten requests before any statistics go to four engines as 3, 3, 2, 2"],
  // Scaling.
  [47, "cases/inputs", "Scale 4->2 then 2->4"],
  [48, "cases/inputs", "Prepare ok on 0,1; rank 2 silent"],
  [51, "host/scaler", "the same target again is the same operation"],
  [54, "cases/inputs", "8->7 with retire=[3]; rank 3 already dead"],
  [55, "cases/inputs", "Joiner connects before any scale request"],
  [56, "cases/inputs", "Expected exit of a removed rank 120 s after commit"],
];

test("every row has its test, under the name that the table says", (t) => {
  for (const [row, file, title] of ROWS) {
    const source = readFileSync(new URL(`../${file}.test.ts`, import.meta.url), "utf8");
    assert.ok(source.includes(title), `row ${row}: test/${file}.test.ts has no test "${title}"`);
  }
  t.diagnostic(`${new Set(ROWS.map(([row]) => row)).size} rows`);
});
