/** Known defects of the original, each as a model of its rules that breaks a property. */
import { agreement } from "./agreement.ts";
import { completedThenFailed, errorOverwritten, lateNotification, rankZeroDies } from "./commit.ts";
import { lateStatistics, publishStarvation, waveLatch } from "./coordinator.ts";
import type { UpstreamDefect } from "./defect.ts";
import { staleError, wedgedEpoch } from "./prepare.ts";
import { duplicateHello, lostReady, strayFrame } from "./startup.ts";

export type { UpstreamDefect };

/** All of them, in the order in which they are told. */
export const upstreamDefects: readonly UpstreamDefect[] = [
  agreement,
  strayFrame,
  lostReady,
  duplicateHello,
  wedgedEpoch,
  rankZeroDies,
  staleError,
  completedThenFailed,
  lateNotification,
  errorOverwritten,
  waveLatch,
  publishStarvation,
  lateStatistics,
];
