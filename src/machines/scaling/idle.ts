import type { AnyStateNodeConfig } from "xstate";

/** A state of the chart with everything inside it. Names are checked where the chart is put together (`assertPortable`). */
export type Part = Omit<AnyStateNodeConfig, "invoke">;

/** Facts that may come at any time and settle nothing where they are listed. */
export const idle: Readonly<Record<string, Record<never, never>>> = {
  written: {},
  failureWritten: {},
  decided: {},
  keyFound: {},
  keyAbsent: {},
  storeFailed: {},
  storeLost: {},
  epochSeen: {},
  enginesReady: {},
  everyoneDecides: {},
  everyoneVoted: {},
  everyoneFinished: {},
  completedSeen: {},
  decisionSeen: {},
  errorSeen: {},
  utilityReplied: {},
  utilityFailed: {},
  utilityLate: {},
  utilityUnknown: {},
  reconfigureFinished: {},
  shutdownComplete: {},
  handshakeListening: {},
  everyoneGreeted: {},
  handshakeFailed: {},
  engineLost: {},
  ended: {},
  commit: {},
  abort: {},
};
