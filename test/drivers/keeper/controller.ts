/**
 * A coordinator reduced to its keeper, for tests that kill it: starts a keeper, starts the launches and services given, prints one JSON line, and stays.
 * argv[2] is JSON: {place, leaseMs, heartbeatMs?, launches, services?, command?}.
 */
import process from "node:process";
import { startKeeper } from "../../../src/drivers/keeper/start.ts";

const { place, leaseMs, heartbeatMs, launches, services = [], command } = JSON.parse(
  process.argv[2]!,
);
const client = await startKeeper(
  {
    place,
    fence: 1,
    leaseMs,
    stopDeadlineMs: 500,
    ...(heartbeatMs === undefined ? {} : { heartbeatMs }),
    ...(command === undefined ? {} : { command }),
  },
  { exited: () => {}, lost: () => {} },
);
const children = [];
for (const launch of launches) children.push(await client.spawn(launch));
const started = [];
for (const { id, kind, options } of services) {
  started.push(await client.startService(id, kind, options));
}
console.log(JSON.stringify({ keeper: client.welcome.keeper, children, services: started }));
setInterval(() => {}, 1000);
