import { useMemo } from "preact/hooks";
import type { JournalRecord } from "../../../journal/mod.ts";
import { firstDifference } from "../../model/compare.ts";
import { OpenFile } from "../app.tsx";
import { useStore } from "../hooks.ts";
import { goTo, update } from "../store.ts";
import { clock, count } from "../words.ts";

/** Two runs side by side: the first record in which they part. */
export function CompareView() {
  const { history, version, other, name } = useStore();
  const difference = useMemo(
    () => other ? firstDifference(history!.records, other.run.records) : undefined,
    [history, version, other],
  );
  if (!other) {
    return (
      <div class="empty">
        <p>
          Choose a second journal. The page shows the first record in which it differs from this
          one.
        </p>
        <OpenFile as="other" />
      </div>
    );
  }
  return (
    <section aria-label="Comparison">
      <p>
        <b>{name}</b> ({count(history!.records.length, "record")}) and <b>{other.name}</b>{" "}
        ({count(other.run.records.length, "record")}).
      </p>
      {difference === undefined ? <p class="verdict good">The two runs are the same.</p> : (
        <>
          <p class="verdict bad">{difference.text}</p>
          <p>
            <button type="button" onClick={() => goTo(difference.seq)}>
              Go to record {difference.seq} in this run
            </button>
          </p>
          <div class="pair">
            <Side title="This run" record={difference.left} />
            <Side title={other.name} record={difference.right} />
          </div>
        </>
      )}
      <button type="button" onClick={() => update({ other: undefined })}>
        Compare with another
      </button>
    </section>
  );
}

function Side({ title, record }: { title: string; record: JournalRecord | undefined }) {
  return (
    <article>
      <h3>{title}</h3>
      {record === undefined ? <p>It has ended here.</p> : (
        <>
          <p>
            Record {record.seq}, {clock(record.at)}: <b>{record.event.type}</b> to {record.to}
          </p>
          <pre
            tabIndex={0}
            aria-label={`Event in ${title}`}
          >{JSON.stringify(record.event, null, 2)}</pre>
          <p class="quiet">digest {record.digest || "not recorded"}</p>
        </>
      )}
    </article>
  );
}
