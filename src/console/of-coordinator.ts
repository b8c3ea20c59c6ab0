import type { Coordinator } from "../coordinator.ts";
import type { JournalStore } from "../journal/mod.ts";
import type { ConsoleCommand } from "./handler.ts";
import { type ConsoleServer, type ConsoleServerOptions, startConsole } from "./server.ts";
import { type Observation, storeSource } from "./source.ts";

/** How often the journal of the coordinator is looked at (milliseconds). */
const POLL_MS = 100;

/**
 * The console of a coordinator in this process: its journal as it grows, the load of its engines, and what an operator may ask
 * (`scale`, `abort`), with the token. `store` is the one that the coordinator was given as `journal`.
 */
export async function coordinatorConsole(
  coordinator: Coordinator,
  store: JournalStore,
  options: Pick<ConsoleServerOptions, "host" | "port" | "token"> = {},
): Promise<ConsoleServer> {
  const latest = new Map<string, Observation>();
  const stop = coordinator.observe((seen) => latest.set(seen.type, seen as unknown as Observation));
  const source = storeSource(store, { pollMs: POLL_MS, observations: () => [...latest.values()] });
  const server = await startConsole({
    ...options,
    source,
    command: (command) => carryOut(coordinator, command),
  });
  return {
    ...server,
    close: async () => {
      stop();
      await server.close();
    },
  };
}

async function carryOut(
  coordinator: Coordinator,
  command: ConsoleCommand,
): Promise<{ readonly text: string }> {
  if (coordinator.scaling === null) {
    throw new Error("this cluster was not started to scale (muster serve --max-size)");
  }
  switch (command.type) {
    case "abort": {
      const operation = String(command["operation"]);
      await coordinator.scaling.abort(operation, "asked for in the console");
      return { text: `Operation ${operation} is asked to abort.` };
    }
    case "scale": {
      const target = Number(command["target"]);
      if (!Number.isInteger(target) || target < 1) {
        throw new Error("a target is a number of ranks from 1");
      }
      const operation = await coordinator.scale(target);
      return { text: `Operation ${operation.id} scales to ${target} ranks.` };
    }
    default:
      throw new Error(`there is no command ${command.type}: abort, scale`);
  }
}
