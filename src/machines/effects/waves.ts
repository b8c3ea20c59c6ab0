/** What the DP coordinator asks of the world (wire spec, section 5). */
import type { EffectTraits } from "../../kernel/mod.ts";

/** Tell every engine that it may go on: the raw frame `READY`. */
export interface CoordinatorReady {
  readonly type: "waves.ready";
}

/** Wake every engine but one: START_DP_WAVE. */
export interface StartWave {
  readonly type: "waves.start";
  readonly wave: number;
  /** The engine's index. */
  readonly exclude: number | null;
}

/** Tell every front-end the wave and whether engines run, without counts. */
export interface PublishWave {
  readonly type: "waves.publish";
  readonly wave: number;
  readonly running: boolean;
}

export type WavesEffect = CoordinatorReady | StartWave | PublishWave;

/** The coordinator's three sockets, and the table of loads that it relays. Reports `bound` with the three endpoints. */
export interface CoordinatorSocket {
  readonly type: "socket.coordinator";
  readonly frontPublish: string;
  readonly backPublish: string;
  readonly backOutput: string;
  /** Engines in the table. */
  readonly rows: number;
  /** Are reports ordered by wave and step? */
  readonly ordered: boolean;
  /** Of a published row: waiting and running, and the use of the KV cache. */
  readonly columns: 2 | 3;
}

export const wavesEffects: Readonly<Record<WavesEffect["type"], EffectTraits>> = {
  "waves.ready": { kind: "message", leaves: "appended" },
  "waves.start": { kind: "message", leaves: "appended" },
  "waves.publish": { kind: "message", leaves: "appended" },
};
