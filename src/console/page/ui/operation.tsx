import { useState } from "preact/hooks";
import { duration, rankList } from "../../../view/mod.ts";
import { type OperationRecord, scalingStatus } from "../../../view/scaling.ts";
import { useNow, useStore } from "../hooks.ts";
import { hasToken, moment, send, update } from "../store.ts";

/** The running scale operation: phase, sizes, who is waited for, deadline, and the button that gives it up; else the last one. */
export function Operations() {
  const state = useStore();
  const now = moment()!;
  const live = state.connection === "live" && state.seq === undefined;
  const at = useNow(live, now.at);
  const scaling = scalingStatus(now.system);
  const record = scaling?.running ?? scaling?.last;
  if (!scaling || !record) return null;
  const running = scaling.running !== null;
  const instance = now.system.instances.get(`operation/${record.operation}`);
  const due = instance?.timers.map((t) => t.dueAt - at).sort((a, b) => a - b)[0];
  return (
    <section class={`operation ${record.phase}`} aria-labelledby="operation-title">
      <h2 id="operation-title">
        {running ? "Scaling" : "Last scaling"} <small>operation {record.operation}</small>
      </h2>
      <p class="sentence">{sentenceOf(record, scaling.size)}</p>
      <dl class="facts">
        <Fact name="Phase" value={record.phase} />
        <Fact name="Target" value={`${record.target} ranks`} />
        <Fact
          name="Serves now"
          value={record.effectiveSize === null ? "nobody can say" : `${record.effectiveSize} ranks`}
        />
        {running && (
          <Fact
            name="Deadline"
            value={due === undefined ? "none" : due <= 0 ? "passed" : `in ${duration(due)}`}
          />
        )}
        {record.waitingFor.length > 0 && (
          <Fact name="Waits for" value={rankList(record.waitingFor)} />
        )}
        {record.enginesToRestart.length > 0 && (
          <Fact name="Engines to restart" value={rankList(record.enginesToRestart)} />
        )}
        {record.safeToDelete.length > 0 && (
          <Fact name="Safe to delete" value={rankList(record.safeToDelete)} />
        )}
      </dl>
      {record.participants.length > 0 && <Participants record={record} />}
      {running && live && state.info?.commands && <Abort id={record.operation} />}
    </section>
  );
}

/** How it stands in one sentence, the first error first. */
function sentenceOf(record: OperationRecord, size: number): string {
  const { firstError, doubts } = record;
  if (firstError !== null) {
    const who = firstError.rank === null ? "" : `Rank ${firstError.rank}: `;
    return `${who}${firstError.text} [${firstError.code}]`;
  }
  if (doubts.length > 0) {
    const [doubt] = doubts;
    return `Rank ${doubt!.rank} is in doubt; ${doubt!.settledBy} would settle it.`;
  }
  switch (record.phase) {
    case "completed":
      return `The cluster serves in ${record.effectiveSize ?? record.target} ranks.`;
    case "inDoubt":
      return "How it ended cannot be read at present.";
    case "failed":
      return "It failed; nothing was changed.";
    default:
      return `From ${record.oldSize ?? size} to ${record.target} ranks: ${record.phase}.`;
  }
}

function Participants({ record }: { record: OperationRecord }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Rank</th>
          <th scope="col">Its part</th>
          <th scope="col">Epoch</th>
        </tr>
      </thead>
      <tbody>
        {record.participants.map((p) => (
          <tr key={p.rank} class={p.inDoubt ? "bad" : undefined}>
            <th scope="row">
              <button
                type="button"
                class="link"
                onClick={() =>
                  update({ view: "charts", of: `rank/${p.rank}/scaling/${record.operation}` })}
              >
                rank {p.rank}
              </button>
            </th>
            <td>
              {p.state}
              {p.inDoubt && <b class="doubt">in doubt</b>}
            </td>
            <td>{p.epoch ?? "–"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Abort({ id }: { id: string }) {
  const [answer, setAnswer] = useState("");
  const [sure, setSure] = useState(false);
  if (!hasToken()) {
    return (
      <p class="remark">
        To abort it, open the address with the token that muster console printed.
      </p>
    );
  }
  const abort = async () => {
    setSure(false);
    setAnswer("Asking…");
    setAnswer(await send({ type: "abort", operation: id }));
  };
  return (
    <p class="tools">
      {sure
        ? (
          <>
            <button type="button" class="danger" onClick={() => void abort()}>
              Yes, abort this operation
            </button>
            <button type="button" onClick={() => setSure(false)}>No</button>
          </>
        )
        : (
          <button type="button" class="danger" onClick={() => setSure(true)}>
            Abort
          </button>
        )}
      <span role="status">{answer}</span>
    </p>
  );
}
