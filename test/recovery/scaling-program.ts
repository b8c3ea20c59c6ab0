/**
 * A coordinator that scales, as a process of its own: `scaling-program.ts DIRECTORY FROM TO [DIES]`. Its engines and stores are real and
 * live with the keeper. With `DIES`, a part of a record, it kills itself as a machine would once the first such record is written: what
 * the record's effects are has not left. Started again on the same directory it goes on.
 */
import { join } from "node:path";
import process from "node:process";
import { Coordinator } from "../../src/coordinator.ts";
import { recoveredText } from "../../src/host/mod.ts";
import {
  bodyOf,
  type FaultPoint,
  type JournalStore,
  type OwnedJournal,
} from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { joiningEngine, referenceEngines } from "../../src/testing/mod.ts";

const [directory, from, to, deadly] = process.argv.slice(2) as [string, string, string, string?];
const FAST = ["--boot-ms", "0", "--load-ms", "0"];
const LEASE_MS = 120_000;

/** A journal whose owner dies of one record. */
class DeadlyStore implements JournalStore {
  readonly name: string;
  readonly #inner: FileStore;

  constructor(inner: FileStore) {
    this.#inner = inner;
    this.name = inner.name;
  }

  segments(): ReturnType<JournalStore["segments"]> {
    return this.#inner.segments();
  }

  async own(fault?: FaultPoint): Promise<OwnedJournal> {
    const journal = await this.#inner.own(fault);
    const append = journal.append.bind(journal);
    journal.append = (record, eventText) => {
      const place = append(record, eventText);
      if (deadly !== undefined && bodyOf(record, eventText).includes(deadly)) {
        journal.write();
        process.kill(process.pid, "SIGKILL");
        for (;;); // it may take the system a moment
      }
      return place;
    };
    return journal;
  }
}

const coordinator = await Coordinator.start({
  cluster: { dataParallelSize: Number(from), moe: true },
  journal: new DeadlyStore(new FileStore(join(directory, "journal"), { durability: "os" })),
  directory,
  launches: (topology) => referenceEngines(topology, () => FAST),
  leaseMs: LEASE_MS,
  scaling: {
    maxSize: 4,
    joiner: joiningEngine(FAST),
    enginesAfterAbort: "restart",
    settleMs: 10_000,
    limits: { utilityMs: 10_000, retryMs: 50, voteMs: 20_000, outcomeMs: 20_000 },
  },
});
const report = await coordinator.recovered;
const scaler = coordinator.scaling!;
await coordinator.ready();
// A caller that was lost asks again with the same name, and learns how it ended.
const operation = await coordinator.scale(Number(to), { operation: "first" });
const outcome = await operation.completed().then((r) => r.phase, (e: Error) => e.message);
// What is left of the operation ends, and engines that cannot scale again start anew.
await scaler.until(() => scaler.status().running === null || undefined);
await coordinator.ready();
const { size } = scaler;
const next = await coordinator.scale(size === 2 ? 3 : 2);
const again = await next.completed().then((r) => r.phase, (e: Error) => e.message);
console.log(JSON.stringify({
  recovered: report.fresh ? null : recoveredText(report),
  owed: report.owed.map(({ effect, done }) => `${effect} ${done}`),
  outcome,
  firstError: operation.record().firstError,
  size,
  again,
  broken: scaler.status().broken,
}));
await coordinator.close();
