/**
 * A coordinator of all ranks as a process with a real journal: `scaling-story.ts DIRECTORY CONTROL_PORT [POINT]`. It scales up, down again, and
 * gives a third operation up. Engines and stores are its parent's, and outlive it: it asks for them in lines of JSON on its output, and is answered on its input. At the
 * first passing of the fault point it kills itself as a machine would.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import type { EngineAnswer } from "../../src/drivers/scaling-engines.ts";
import type { StoreHost } from "../../src/drivers/scaling-store.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import type { Bootstrap } from "../../src/machines/effects/scaling.ts";
import type { Utility } from "../../src/protocol/mod.ts";
import { MemoryEngines } from "../../src/testing/memory-engines.ts";
import { ScalingGroup } from "../../src/testing/scaling-group.ts";
import { say } from "./say.ts";

/** What this process asks of its parent, and what it hears. */
export type Asked =
  | { readonly do: "call"; readonly rank: number; readonly utility: Utility; readonly call: string }
  | { readonly do: "greet"; readonly bootstrap: Bootstrap }
  | { readonly do: "serve"; readonly name: string }
  | { readonly do: "stop"; readonly port: number }
  | { readonly do: "spoil" }
  /** An operation ended: what is to be restarted is, and whoever left is gone. */
  | { readonly do: "mend"; readonly restart: readonly number[]; readonly size: number }
  | { readonly do: "told"; readonly told: ScalingTold };
export type Heard =
  | { readonly re: number; readonly value: unknown }
  | { readonly notified: Parameters<Listener> };

/** How the story ended. */
export interface ScalingTold {
  /** Phase and effective size of the operations, in order. */
  readonly ended: readonly (readonly [phase: string, size: number | null])[];
  readonly points: readonly string[];
}

export const LIMITS = {
  prepareMs: 30_000,
  voteMs: 10_000,
  outcomeMs: 10_000,
  utilityMs: 5_000,
  retryMs: 20,
};

type Listener = Parameters<MemoryEngines["onNotification"]>[0];

let asked = 0;
const waiting = new Map<number, (value: never) => void>();
function ask<T>(question: Asked): Promise<T> {
  const id = ++asked;
  say(JSON.stringify({ id, ...question }));
  return new Promise((resolve) => waiting.set(id, resolve));
}

/** The parent's engines. */
class FarEngines extends MemoryEngines {
  constructor() {
    super(0);
  }
  override call(rank: number, utility: Utility, call: string): Promise<EngineAnswer> {
    return ask({ do: "call", rank, utility, call });
  }
  override greet(bootstrap: Bootstrap): Promise<readonly number[]> {
    return ask({ do: "greet", bootstrap });
  }
  override onNotification(listener: Listener): void {
    listeners.push(listener);
  }
}
const listeners: Listener[] = [];
const stores: StoreHost = {
  serve: (name) => ask({ do: "serve", name }),
  stop: (port) => ask({ do: "stop", port }),
  close: () => Promise.resolve(),
};

async function tell(directory: string, controlPort: number, deadly?: string): Promise<void> {
  const passed = new Set<string>();
  const group = await ScalingGroup.start({
    size: 2,
    journal: new FileStore(directory),
    world: { engines: new FarEngines(), stores, controlPort },
    limits: LIMITS,
    graceMs: 200,
    fault: (name) => {
      passed.add(name);
      if (name !== deadly) return;
      process.kill(process.pid, "SIGKILL");
      for (;;); // it may take the system a moment
    },
  });
  await group.host.recovered;
  const ended: [string, number | null][] = [];
  for (const [operation, target] of [["up", 3], ["down", 2], ["given-up", 3]] as const) {
    // An engine that cannot prepare: the third operation is given up.
    if (operation === "given-up") await ask({ do: "spoil" });
    // A caller that was lost asks again, with the same name.
    const running = await group.scaler.scale(target, { operation, deadlineMs: 60_000 });
    await running.completed().catch(() => {});
    // The ranks' own parts end a moment later.
    await group.scaler.until(() =>
      group.scaler.status().running === null &&
        ![...group.host.system.instances].some((i) => i.chart === "scaling") || undefined
    );
    const { phase, effectiveSize, enginesToRestart } = running.record();
    ended.push([phase, effectiveSize]);
    await ask({ do: "mend", restart: enginesToRestart, size: group.scaler.size });
  }
  await group.close();
  await ask({ do: "told", told: { ended, points: [...passed] } });
  process.exit(0);
}

if (process.argv[2] !== undefined && process.argv[3] !== undefined) {
  createInterface({ input: process.stdin }).on("line", (line) => {
    const heard = JSON.parse(line) as Heard;
    if ("notified" in heard) listeners.forEach((listener) => listener(...heard.notified));
    else waiting.get(heard.re)?.(heard.value as never);
  });
  await tell(process.argv[2], Number(process.argv[3]), process.argv[4]);
}
