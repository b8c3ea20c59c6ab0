/**
 * The console: a local page that shows a run, live or from its journal, with time travel.
 *
 * Everything is computed in the page from the same records by the same code; the server hands out records, layouts of
 * charts and the page itself, and asks nothing of anybody else.
 *
 * @module
 */
export {
  ConsoleError,
  type ConsoleServer,
  type ConsoleServerOptions,
  startConsole,
} from "./server.ts";
export { type ConsoleCommand, consoleHandler, type ConsoleOptions } from "./handler.ts";
export {
  type ConsoleSource,
  emptySource,
  type Observation,
  type RunHead,
  type SourceLine,
  storeSource,
  type StoreSourceOptions,
} from "./source.ts";
export { coordinatorConsole } from "./of-coordinator.ts";
export { modelExplorer } from "./model-explorer.ts";
export { remoteSource } from "./remote.ts";
export { type ExploredState, type Explorer, type FoundTrace } from "./explore.ts";
