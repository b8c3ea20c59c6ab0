import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { changesOf } from "../../model/difference.ts";
import { ALL_ROWS, eventLine, type Row, type RowFilter, rowsOf } from "../../model/rows.ts";
import { MARK, type RunHistory } from "../../model/run.ts";
import { useStore } from "../hooks.ts";
import { goTo, moment, update } from "../store.ts";
import { clock, count } from "../words.ts";

const HEIGHT = 28;
/** Rows drawn beyond the visible ones, on either side. */
const MARGIN = 12;

/** The journal as a table of which only the visible rows exist, with the detail of the record at the moment shown. */
export function JournalView() {
  const { history, version, searching } = useStore();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!searching) return;
    field.current?.focus();
    update({ searching: false });
  }, [searching]);
  const [filter, setFilter] = useState<RowFilter>(ALL_ROWS);
  const rows = useMemo(() => rowsOf(history!.records, history!.marks, filter), [
    history,
    version,
    filter,
  ]);
  const change = (part: Partial<RowFilter>) => setFilter({ ...filter, ...part });
  const shown = useMemo(() => rows.reduce((n, row) => n + ("index" in row ? 1 : 0), 0), [rows]);
  return (
    <section class="journal" aria-label="Journal">
      <div class="tools">
        <input
          id="filter"
          ref={field}
          type="search"
          placeholder="Search: rank/3 ready"
          aria-label="Search the journal"
          value={filter.text}
          onInput={(e) => change({ text: e.currentTarget.value })}
        />
        <Check
          label="problems only"
          checked={filter.problems}
          set={(problems) => change({ problems })}
        />
        <Check
          label="state changes only"
          checked={filter.moved}
          set={(moved) => change({ moved })}
        />
        <Check label="show pauses" checked={filter.gaps} set={(gaps) => change({ gaps })} />
        <span class="quiet" role="status">
          {count(shown, "record")} of {history!.records.length.toLocaleString("en")}
        </span>
      </div>
      <div class="split">
        <Table history={history!} rows={rows} />
        <Detail />
      </div>
    </section>
  );
}

function Check(
  { label, checked, set }: { label: string; checked: boolean; set: (on: boolean) => void },
) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(e) => set(e.currentTarget.checked)} />
      {label}
    </label>
  );
}

function Table({ history, rows }: { history: RunHistory; rows: readonly Row[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const seq = moment()!.seq;
  const following = useStore().seq === undefined;
  useEffect(() => {
    const measure = () => {
      const el = box.current;
      if (el) setView({ top: el.scrollTop, height: el.clientHeight });
    };
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  const selected = useMemo(() => positionOf(rows, history, seq), [rows, seq]);
  useEffect(() => {
    const el = box.current;
    if (!el || selected < 0) return;
    const y = selected * HEIGHT;
    if (following) el.scrollTop = el.scrollHeight;
    else if (y < el.scrollTop + HEIGHT) el.scrollTop = y - HEIGHT;
    else if (y > el.scrollTop + el.clientHeight - 3 * HEIGHT) {
      el.scrollTop = y - el.clientHeight + 3 * HEIGHT;
    }
  }, [selected, following, rows.length]);
  const from = Math.max(0, Math.floor(view.top / HEIGHT) - MARGIN);
  const to = Math.min(rows.length, Math.ceil((view.top + view.height) / HEIGHT) + MARGIN);
  const move = (e: KeyboardEvent) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    if (step === undefined) return;
    e.preventDefault();
    for (let i = selected + step; i >= 0 && i < rows.length; i += step) {
      const row = rows[i]!;
      if ("index" in row) return goTo(history.records[row.index]!.seq);
    }
  };
  return (
    <div
      class="table"
      role="table"
      aria-label="Records"
      aria-rowcount={rows.length + 1}
      aria-colcount={5}
      tabIndex={0}
      ref={box}
      onKeyDown={move}
      onScroll={(e) =>
        setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}
    >
      <div role="rowgroup" class="head">
        <div role="row" class="row" aria-rowindex={1}>
          <span role="columnheader">Record</span>
          <span role="columnheader">Time</span>
          <span role="columnheader">To</span>
          <span role="columnheader">Event</span>
          <span role="columnheader">With</span>
        </div>
      </div>
      <div role="rowgroup" class="body" style={{ height: `${rows.length * HEIGHT}px` }}>
        {rows.slice(from, to).map((row, i) => (
          <Line
            key={from + i}
            row={row}
            position={from + i}
            history={history}
            selected={from + i === selected}
          />
        ))}
      </div>
    </div>
  );
}

/** The row of a record, or the last before it. Rows are in order, so it is found by halving. */
function positionOf(rows: readonly Row[], history: RunHistory, seq: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[middle]!;
    const at = "index" in row ? history.records[row.index]!.seq : row.before;
    if (at <= seq) low = middle + 1;
    else high = middle;
  }
  const row = rows[low - 1];
  return row && "gap" in row ? low - 2 : low - 1;
}

function Line({ row, position, history, selected }: {
  row: Row;
  position: number;
  history: RunHistory;
  selected: boolean;
}) {
  const place = { top: `${position * HEIGHT}px` };
  if ("gap" in row) {
    return (
      <div role="row" class="row gap" aria-rowindex={position + 2} style={place}>
        <span role="cell">{row.gap}</span>
      </div>
    );
  }
  const record = history.records[row.index]!;
  const mark = history.marks[row.index] ?? 0;
  const problem = mark & MARK.failure ? "failure" : mark & MARK.note ? "note" : "";
  return (
    <div
      role="row"
      class={`row ${problem} ${selected ? "selected" : ""}`}
      aria-rowindex={position + 2}
      aria-current={selected ? "true" : undefined}
      style={place}
      onClick={() => goTo(record.seq)}
    >
      <span role="cell">{record.seq}</span>
      <span role="cell">{clock(record.at)}</span>
      <span role="cell">{record.to}</span>
      <span role="cell">
        {record.event.type}
        {problem && <em>{problem === "failure" ? " failure" : " not taken"}</em>}
      </span>
      <span role="cell" class="quiet">{eventLine(record.event)}</span>
    </div>
  );
}

/** What the record says and what it led to. */
function Detail() {
  const now = moment()!;
  const { applied } = now;
  if (applied === undefined) {
    return (
      <aside class="detail" aria-label="Detail">
        <p class="quiet">Before the first record.</p>
      </aside>
    );
  }
  const changes = changesOf(applied);
  return (
    <aside class="detail" aria-label={`Detail of record ${now.seq}`} tabIndex={0}>
      <h3>
        Record {now.seq}: {applied.input.event.type} to {applied.input.to}
      </h3>
      {applied.notes.map((note) => (
        <p class="remark" key={note.instance + note.what}>
          {note.kind}: {note.what} at {note.instance}
          {note.text && ` (${note.text})`}
        </p>
      ))}
      <h4>What changed</h4>
      {changes.length === 0 ? <p class="quiet">Nothing.</p> : (
        <table class="changes">
          <thead>
            <tr>
              <th scope="col">Where</th>
              <th scope="col">Before</th>
              <th scope="col">After</th>
            </tr>
          </thead>
          <tbody>
            {changes.slice(0, 200).map((c, i) => (
              <tr key={i}>
                <th scope="row">
                  {c.instance}
                  <small>{c.what}</small>
                </th>
                <td>{c.before ?? "–"}</td>
                <td>{c.after ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <h4>What it asked of the world</h4>
      {applied.effects.length === 0 ? <p class="quiet">Nothing.</p> : (
        <ul class="effects">
          {applied.effects.slice(0, 200).map((e) => (
            <li key={e.id}>
              <b>{"effect" in e ? e.effect.type : e.kind}</b>{" "}
              <span class="quiet">{e.kind}, from {e.from}, {e.id}</span>
            </li>
          ))}
        </ul>
      )}
      <h4>The event</h4>
      <pre
        tabIndex={0}
        aria-label="The event as JSON"
      >{JSON.stringify(applied.input.event, null, 2)}</pre>
    </aside>
  );
}
