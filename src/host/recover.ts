/** From a journal to the system as it was: the fold of recovery, before anything touches the world. */
import {
  differenceText,
  type Header,
  JournalError,
  JournalReader,
  type LeftOut,
  type OwnedJournal,
  replay,
  type Snapshot,
  structuresOf,
} from "../journal/mod.ts";
import { Kernel, type KernelEvent, stateDigest, type System, type Typed } from "../kernel/mod.ts";
import { HostError } from "./error.ts";
import type { Views } from "./views.ts";

export interface Recovered {
  readonly system: System;
  /** The event of input 1. */
  readonly configuration: KernelEvent;
  readonly run: string;
  /** For a fork: what its headers go on saying. */
  readonly origin: Pick<Header, "forkOf">;
  /** The record from whose state the fold began: a checkpoint's or a snapshot's; 0 for the beginning. */
  readonly from: number;
  readonly replayed: number;
  readonly leftOut: readonly LeftOut[];
  /** Views that begin anew although inputs before the checkpoint are gone. */
  readonly forgetful: readonly string[];
}

/**
 * The system after the last record, or undefined when nothing was ever recorded.
 *
 * @param forks whether a fork may be gone on with
 * @throws JournalError `journal-damaged`, `journal-format`, `journal-incompatible`, `journal-fork`
 */
export function recover<E extends Typed, R extends Typed>(
  kernel: Kernel<E, R>,
  journal: Pick<OwnedJournal, "segments" | "snapshots">,
  views: Views,
  forks: boolean,
): Recovered | undefined {
  const reader = new JournalReader(journal.segments());
  const { header, checkpoint } = reader;
  if (header === undefined) return undefined;
  if (header.forkOf !== undefined && !forks) {
    const { run, seq } = header.forkOf;
    throw new JournalError(
      "journal-fork",
      `this journal is a fork of run ${run} at record ${seq}: what it holds and owes belongs to that run. ` +
        "Replay it, or open it with drivers of its own and `fork: true`",
    );
  }
  const structures = JSON.stringify(structuresOf(kernel));
  // Digests are read only where the charts themselves say that they have changed.
  const check = JSON.stringify(header.machines) !== structures;
  const cached = check ? undefined : cachedStart(kernel, reader, journal, views);
  const start = cached?.snapshot ?? checkpoint;
  const forgetful = start === undefined ? [] : views.strangers(start.views);
  if (start !== undefined) views.load(start.views);
  let configuration = start?.configuration;
  const { fold, records, difference } = replay(kernel, reader, {
    check,
    ...(cached === undefined ? {} : { system: cached.system, from: cached.snapshot.place }),
    each: (applied) => {
      configuration ??= applied.input.event;
      views.apply(applied);
    },
  });
  if (difference !== undefined) {
    throw new JournalError(
      "journal-incompatible",
      `the run was recorded with other charts: ${differenceText(difference)}. ` +
        "Use the version that wrote it, or fork the run before this record",
    );
  }
  if (configuration === undefined) return undefined; // its owner died before input 1 was complete
  return {
    system: fold.system(),
    configuration,
    run: header.run,
    origin: header.forkOf === undefined ? {} : { forkOf: header.forkOf },
    from: start?.system.seq ?? 0,
    replayed: records,
    leftOut: reader.leftOut,
    forgetful,
  };
}

/** The newest snapshot that fits: of this run, of these charts and views, and whose record says that its state was this one. */
function cachedStart<E extends Typed, R extends Typed>(
  kernel: Kernel<E, R>,
  reader: JournalReader,
  journal: Pick<OwnedJournal, "snapshots">,
  views: Views,
): { snapshot: Snapshot; system: System } | undefined {
  const structures = JSON.stringify(structuresOf(kernel));
  for (const snapshot of journal.snapshots()) {
    if (snapshot.run !== reader.header?.run) continue;
    if (JSON.stringify(snapshot.machines) !== structures) continue;
    if (views.strangers(snapshot.views).length > 0) continue;
    const record = reader.recordAt(snapshot.place);
    if (record?.seq !== snapshot.system.seq) continue;
    if (record.digest.slice(0, 16) !== snapshot.system.digest) continue;
    try {
      return { snapshot, system: kernel.load(snapshot.system) };
    } catch {
      continue; // a cache that does not load is no cache
    }
  }
  return undefined;
}

/**
 * The system that the journal's text leads to, by a kernel that remembers nothing.
 *
 * @throws HostError `host-step` when it is not the one in hand: then a chart, or what is kept of the inputs, is not all there is.
 */
export function rebuilt<E extends Typed, R extends Typed>(
  kernel: Kernel<E, R>,
  journal: OwnedJournal,
  inHand: System,
): System {
  const reader = new JournalReader(journal.segments());
  const { fold, difference } = replay(new Kernel(kernel.definition), reader, { check: true });
  const system = fold.system();
  if (difference !== undefined || stateDigest(system) !== stateDigest(inHand)) {
    const what = difference === undefined
      ? "the state in hand is another"
      : differenceText(difference);
    throw new HostError("host-step", `replayed after input ${inHand.seq}: ${what}`);
  }
  return system;
}
