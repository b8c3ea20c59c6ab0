import { type Level, verdictOf } from "../../model/verdict.ts";
import { useNow, useStore } from "../hooks.ts";
import { goTo, moment } from "../store.ts";

const SIGNS: Readonly<Record<Level, string>> = {
  good: "✓",
  working: "…",
  attention: "!",
  bad: "✗",
  unknown: "–",
};

/** The first thing that is read: how it stands, in words, and what to do. */
export function Banner() {
  const state = useStore();
  const now = moment();
  const live = state.connection === "live" && state.seq === undefined;
  const at = useNow(live, now?.at ?? 0);
  const divergence = state.history?.divergence;
  if (now === undefined) return null;
  const verdict = verdictOf(now.status, at);
  return (
    <section class={`banner ${verdict.level}`} aria-live="polite" aria-label="State of the cluster">
      <span class="sign" aria-hidden="true">{SIGNS[verdict.level]}</span>
      <div>
        <h2>
          {verdict.title}
          {state.seq !== undefined && <small>at record {state.seq}</small>}
        </h2>
        <p class="sentence">{verdict.sentence}</p>
        {verdict.remedy && <p class="remedy">What to do: {verdict.remedy}</p>}
        {verdict.seq !== undefined && verdict.seq !== now.seq && (
          <button
            type="button"
            class="link"
            onClick={() => goTo(verdict.seq!)}
          >
            Go to record {verdict.seq}, where it happened
          </button>
        )}
        {divergence && <p class="remedy">From record {divergence.seq} on: {divergence.text}.</p>}
        {verdict.also.length > 0 && (
          <details>
            <summary>{verdict.also.length} more to know: {verdict.also[0]}</summary>
            <ul>{verdict.also.map((text) => <li key={text}>{text}</li>)}</ul>
          </details>
        )}
      </div>
    </section>
  );
}
