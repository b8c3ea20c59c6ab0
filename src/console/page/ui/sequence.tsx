import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import {
  castInOrder,
  type SequenceStep,
  stepsOfRun,
  toSequenceMermaid,
  toSequenceSvg,
  toSequenceText,
} from "../../../charts/mod.ts";
import { useStore } from "../hooks.ts";
import { goTo, moment } from "../store.ts";

const AROUND = [5, 15, 40, 100] as const;

/** Who said what to whom around the moment shown. */
export function SequenceView() {
  const { history, version } = useStore();
  const [around, setAround] = useState<number>(15);
  const now = moment()!;
  const steps = useMemo(
    () => stepsOfRun(history!.between(now.seq - around, now.seq + Math.ceil(around / 2))),
    [history, version, now.seq, around],
  );
  return (
    <section aria-label="Around this moment">
      <div class="tools">
        <label>
          Records before this one{" "}
          <select value={around} onChange={(e) => setAround(Number(e.currentTarget.value))}>
            {AROUND.map((n) => <option key={n} value={n}>{n}</option>)}
          </select>
        </label>
        <Copy
          label="Copy as text"
          text={() => toSequenceText(steps, { lifelines: castInOrder(steps) })}
        />
        <Copy label="Copy as Mermaid" text={() => toSequenceMermaid(steps, castInOrder(steps))} />
      </div>
      <Diagram steps={steps} at={now.seq} go={goTo} />
    </section>
  );
}

export function Diagram({ steps, at, go }: {
  steps: readonly SequenceStep[];
  at?: number;
  go?: (seq: number) => void;
}) {
  const html = useMemo(
    () =>
      toSequenceSvg(steps, {
        lifelines: castInOrder(steps),
        bare: true,
        ...(at === undefined ? {} : { at }),
      }),
    [steps, at],
  );
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const el = box.current;
    const now = el?.querySelector<SVGGElement>(".step.now");
    if (!el || !now) return;
    const y = now.getBoundingClientRect().top - el.getBoundingClientRect().top + el.scrollTop;
    el.scrollTop = y - el.clientHeight / 2;
  }, [html]);
  const click = (e: MouseEvent) => {
    const seq = (e.target as Element).closest("[data-seq]")?.getAttribute("data-seq");
    if (seq && go) go(Number(seq));
  };
  if (steps.length === 0) return <p class="empty">Nothing happened here.</p>;
  return (
    <div
      class="picture diagram"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label="Sequence diagram"
      onClick={click}
      dangerouslySetInnerHTML={{ __html: html }}
    />
  );
}

function Copy({ label, text }: { label: string; text: () => string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setSaid("copied");
    } catch {
      setSaid("the browser did not allow it");
    }
  };
  return (
    <span>
      <button type="button" class="small" onClick={() => void copy()}>{label}</button>{" "}
      <span role="status" class="quiet">{said}</span>
    </span>
  );
}
