/** A journal in memory, for tests and for runs that nobody needs to remember. */
import { JournalError, type Place } from "../error.ts";
import type { Segment } from "../read.ts";
import {
  type Checkpoint,
  encodeCheckpoint,
  encodeHeader,
  encodeRecord,
  type Header,
  type RecordHead,
} from "../record.ts";
import type { FaultPoint, JournalStore, OwnedJournal, Snapshot } from "../store.ts";
import { segmentName } from "./names.ts";

interface Stored {
  readonly name: string;
  text: string;
  written: number;
  synced: number;
}

const encoder = new TextEncoder();

/** Segments in memory. They outlive their owners: opening the store again is a restart. */
export class MemoryStore implements JournalStore {
  readonly name = "memory";
  #segments: Stored[] = [];
  #snapshots: Snapshot[] = [];
  #fence = 0;
  #owned = false;

  segments(): readonly Segment[] {
    return this.#segments.map(({ name, text }) => {
      const bytes = encoder.encode(text);
      return { name, bytes: bytes.length, chunks: (from = 0) => [bytes.subarray(from)] };
    });
  }

  own(fault: FaultPoint = () => {}): Promise<OwnedJournal> {
    if (this.#owned) {
      return Promise.reject(
        new JournalError("journal-locked", "this journal in memory has an owner: close it first"),
      );
    }
    this.#owned = true;
    return Promise.resolve(this.#owner(++this.#fence, fault));
  }

  /**
   * What a crash leaves: the owner is gone, with everything that was not yet written (`process`) or not yet safe (`power`).
   */
  crash(lost: "process" | "power" = "power"): void {
    for (const s of this.#segments) {
      s.text = s.text.slice(0, lost === "power" ? s.synced : s.written);
      s.written = s.synced = s.text.length;
    }
    this.#owned = false;
    this.#fence++; // whoever still believes to be the owner is not any more
  }

  /** The journal's text, one segment after the other. */
  text(): string {
    return this.#segments.map((s) => s.text).join("");
  }

  #owner(fence: number, fault: FaultPoint): OwnedJournal {
    let current: Stored | undefined;
    let lines = 0;
    const check = () => {
      if (fence !== this.#fence || !this.#owned) {
        throw new JournalError("journal-lost", "the journal in memory was taken over");
      }
    };
    const write = () => {
      check();
      if (current !== undefined) current.written = current.text.length;
    };
    const commit = async () => {
      const segment = current;
      if (segment === undefined) return;
      const length = segment.written;
      fault("journal.sync.before");
      await Promise.resolve();
      check();
      segment.synced = Math.max(segment.synced, length);
      fault("journal.sync.after");
    };
    return {
      fence,
      segments: () => this.segments(),
      snapshots: () => [...this.#snapshots],
      begin: async (header: Header, checkpoint?: Checkpoint) => {
        check();
        const what = checkpoint === undefined ? "journal.segment" : "journal.checkpoint";
        fault(`${what}.before`);
        const text = encodeHeader(header) +
          (checkpoint === undefined ? "" : encodeCheckpoint(checkpoint));
        current = { name: segmentName(header), text, written: text.length, synced: 0 };
        lines = checkpoint === undefined ? 1 : 2;
        this.#segments.push(current);
        fault(`${what}.written`);
        await commit();
        fault(`${what}.after`);
        if (checkpoint !== undefined) {
          fault("journal.compact.before");
          this.#segments = [current];
          this.#snapshots = [];
          fault("journal.compact.after");
        }
      },
      append: (record: RecordHead, eventText: string): Place => {
        const place = { file: current!.name, line: ++lines, offset: current!.text.length };
        current!.text += encodeRecord(record, eventText);
        return place;
      },
      write: () => {
        fault("journal.write.before");
        write();
        fault("journal.write.after");
      },
      commit,
      get bytes() {
        return current?.text.length ?? 0;
      },
      saveSnapshot: async (snapshot: Snapshot) => {
        fault("journal.snapshot.before");
        await Promise.resolve();
        this.#snapshots = [snapshot, ...this.#snapshots].slice(0, 2);
        fault("journal.snapshot.after");
      },
      close: async () => {
        if (fence !== this.#fence || !this.#owned) return;
        write();
        await commit();
        fault("journal.release.before");
        this.#owned = false;
        fault("journal.release.after");
      },
    };
  }
}
