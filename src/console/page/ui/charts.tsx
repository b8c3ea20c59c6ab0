import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  type ChartOverlay,
  toSvg,
  transitionsOf,
  transitionText,
  valueText,
} from "../../../charts/mod.ts";
import { useStore } from "../hooks.ts";
import { moment, trackedCharts, update } from "../store.ts";
import { count } from "../words.ts";

/** Charts that are wider are shown at their own size, with the active state in the middle: fitted, nobody could read them. */
const WIDE = 1800;

/** The statechart of one instance at the moment shown: active states, last transition, counts, refused events. */
export function ChartsView() {
  const { of, layouts } = useStore();
  const [coverage, setCoverage] = useState(false);
  const [fit, setFit] = useState<boolean>();
  const now = moment()!;
  const instances = [...now.system.instances];
  const chosen = instances.find((i) => i.id === of) ?? instances.find((i) => i.id === "startup") ??
    instances[0];
  if (chosen === undefined) return <p class="empty">At this moment nothing runs yet.</p>;
  const model = trackedCharts.model(chosen.chart)!;
  const overlay: ChartOverlay = {
    ...now.tracker.overlay(chosen.chart),
    active: trackedCharts.activeIn(chosen.chart, chosen.state.snapshot),
    coverage,
    ...lastOf(now.tracker.lastOf(chosen.id)),
  };
  const fits = fit ?? (layouts?.[chosen.chart]?.width ?? 0) < WIDE;
  const last = transitionsOf(model).find((t) => t.id === overlay.last);
  const alike = instances.filter((i) => i.chart === chosen.chart).length;
  return (
    <section aria-labelledby="chart-title">
      <div class="tools">
        <label>
          Instance{" "}
          <select value={chosen.id} onChange={(e) => update({ of: e.currentTarget.value })}>
            {groups(instances).map(([chart, ids]) => (
              <optgroup label={chart} key={chart}>
                {ids.map((id) => <option key={id} value={id}>{id}</option>)}
              </optgroup>
            ))}
          </select>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={coverage}
            onChange={(e) => setCoverage(e.currentTarget.checked)}
          />
          mark what never happened
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={fits}
            onChange={(e) => setFit(e.currentTarget.checked)}
          />
          fit to the page
        </label>
      </div>
      <h2 id="chart-title">
        {chosen.id} <small>is {valueText(chosen.state.snapshot.value)}</small>
      </h2>
      <p>
        Last transition: {last ? <b>{transitionText(last)}</b> : "none yet"}. Counts are of{" "}
        {count(alike, "instance")} of this chart.
      </p>
      <Picture chart={chosen.chart} overlay={overlay} layouts={layouts} fit={fits} />
      <Refused overlay={overlay} />
    </section>
  );
}

const lastOf = (last: string | undefined): Pick<ChartOverlay, "last"> =>
  last === undefined ? {} : { last };

function groups(instances: readonly { id: string; chart: string }[]) {
  const found = new Map<string, string[]>();
  for (const { id, chart } of instances) found.set(chart, [...(found.get(chart) ?? []), id]);
  return [...found];
}

function Picture({ chart, overlay, layouts, fit }: {
  fit: boolean;
  chart: string;
  overlay: ChartOverlay;
  layouts: ReturnType<typeof useStore>["layouts"];
}) {
  const layout = layouts?.[chart];
  const html = useMemo(
    () => layout ? toSvg(trackedCharts.model(chart)!, layout, { overlay, bare: true }) : "",
    [layout, overlay],
  );
  const { unlaid } = useStore();
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const el = box.current;
    const active = el?.querySelector(".atomic.active, .final.active");
    if (!el || !active || fit) return;
    const [at, frame] = [active.getBoundingClientRect(), el.getBoundingClientRect()];
    el.scrollLeft += at.left + at.width / 2 - frame.left - frame.width / 2;
    el.scrollTop += at.top + at.height / 2 - frame.top - frame.height / 2;
  }, [html, fit]);
  if (!layout) {
    return (
      <p class="empty">
        {unlaid === undefined
          ? "Drawing the chart…"
          : `The picture of this chart comes from the server, which does not answer: ${unlaid}.`}
      </p>
    );
  }
  return (
    <div
      class={fit ? "picture fit" : "picture diagram"}
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={`Statechart ${chart}`}
      dangerouslySetInnerHTML={{ __html: html }}
    />
  );
}

function Refused({ overlay }: { overlay: ChartOverlay }) {
  const rows = [...overlay.refused ?? []].flatMap(([id, events]) =>
    [...events].map(([event, n]) => ({ id, event, n }))
  );
  if (rows.length === 0) return null;
  return (
    <>
      <h3>Events that were not taken</h3>
      <ul>
        {rows.map(({ id, event, n }) => (
          <li key={id + event}>
            {n} × <b>{event}</b> in {id}
          </li>
        ))}
      </ul>
    </>
  );
}
