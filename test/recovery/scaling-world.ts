/** Engines in memory and stores that outlive the coordinators which ask for them: processes of `scaling-story.ts`. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers";
import { OwnStores } from "../../src/drivers/scaling-store.ts";
import { MemoryEngines } from "../../src/testing/memory-engines.ts";
import type { Asked, Heard, ScalingTold } from "./scaling-story.ts";

export interface ScalingLife {
  readonly signal: string | null;
  readonly told: ScalingTold | undefined;
}

export class ScalingWorld {
  readonly #engines = new MemoryEngines(2);
  readonly #stores = new OwnStores();
  readonly #control = this.#stores.serve("control");

  /** One coordinator, to its end. */
  async live(
    command: readonly string[],
    directory: string,
    ...point: string[]
  ): Promise<ScalingLife> {
    const [program, ...rest] = command;
    const args = [...rest, directory, String(await this.#control), ...point];
    const child = spawn(program!, args, { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.on("error", () => {}); // it is dead, and hears nothing any more
    const say = (heard: Heard) => void child.stdin.write(`${JSON.stringify(heard)}\n`);
    let told: ScalingTold | undefined;
    let alive = true;
    // Engines reply before they notify, and a reply comes as a promise.
    this.#engines.onNotification((...notified) => {
      setImmediate(() => alive && say({ notified }));
    });
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { id, ...asked } = JSON.parse(line) as Asked & { id: number };
      if (asked.do === "told") told = asked.told;
      void this.#answer(asked).then((value) => say({ re: id, value }));
    });
    return await new Promise((resolve) =>
      child.on("close", (_, signal) => {
        alive = false;
        resolve({ signal, told });
      })
    );
  }

  async #answer(asked: Asked): Promise<unknown> {
    switch (asked.do) {
      case "call":
        return await this.#engines.call(asked.rank, asked.utility, asked.call);
      case "greet":
        return await this.#engines.greet(asked.bootstrap);
      case "serve":
        return await this.#stores.serve(asked.name);
      case "stop":
        return await this.#stores.stop(asked.port);
      case "spoil":
        return void this.#engines.faults.set("1 reinitialize_distributed", "fails");
      case "mend": {
        const { engines, faults } = this.#engines;
        faults.clear();
        for (const rank of asked.restart) {
          if (rank < asked.size) this.#engines.restart(rank, asked.size);
        }
        for (const rank of [...engines.keys()]) if (rank >= asked.size) engines.delete(rank);
        return;
      }
      case "told":
        return;
    }
  }

  async close(): Promise<void> {
    await this.#engines.close();
    await this.#stores.close();
  }
}
