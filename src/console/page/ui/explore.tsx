import { useEffect, useState } from "preact/hooks";
import type { ExploredState } from "../../explore.ts";
import { useStore } from "../hooks.ts";
import { headers, update } from "../store.ts";
import { Diagram } from "./sequence.tsx";

/** The checker's state space, walked step by step: any enabled action, back, and the traces that it found. */
export function ExploreView() {
  const { info, path } = useStore();
  const [found, setFound] = useState<{ state?: ExploredState; error?: string }>({});
  const key = path.join(".");
  useEffect(() => {
    let stale = false;
    void (async () => {
      const response = await fetch(`/api/explore?path=${key}`, { headers: headers() });
      const answer = await response.json() as ExploredState & { error?: string };
      if (!stale) {
        setFound(response.ok ? { state: answer } : { error: answer.error ?? "no answer" });
      }
    })();
    return () => {
      stale = true;
    };
  }, [key]);
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if ((e.target as HTMLElement).matches("input, select, textarea")) return;
      const choice = Number(e.key) - 1;
      if (choice >= 0 && choice < (found.state?.enabled.length ?? 0)) {
        update({ path: [...path, choice] });
      } else if (e.key === "Backspace" || e.key === "ArrowLeft") {
        update({ path: path.slice(0, -1) });
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [key, found]);
  const explore = info!.explore!;
  const { state } = found;
  return (
    <section aria-label={`Exploring ${explore.name}`}>
      <h2>
        {explore.name} <small>{explore.summary}</small>
      </h2>
      {explore.traces.length > 0 && (
        <ul class="traces">
          {explore.traces.map((trace) => (
            <li key={trace.property + trace.path.join(".")}>
              <button type="button" onClick={() => update({ path: trace.path })}>
                {trace.property}
              </button>{" "}
              {trace.text}, {trace.path.length} steps
            </li>
          ))}
        </ul>
      )}
      {found.error && <p class="remark">{found.error}</p>}
      {state && (
        <>
          {state.violated.map((p) => <p class="verdict bad" key={p}>Does not hold here: {p}</p>)}
          <div class="tools">
            <button
              type="button"
              disabled={path.length === 0}
              onClick={() => update({ path: path.slice(0, -1) })}
            >
              Back
            </button>
            <button type="button" disabled={path.length === 0} onClick={() => update({ path: [] })}>
              To the beginning
            </button>
            <span class="quiet">step {path.length}</span>
          </div>
          <div class="split even">
            <div>
              <h3>What may happen</h3>
              {state.enabled.length === 0
                ? <p>Nothing more: every run ends here.</p>
                : (
                  <ol class="choices">
                    {state.enabled.map((choice, i) => (
                      <li key={i}>
                        <button
                          type="button"
                          class={choice.kind}
                          onClick={() => update({ path: [...path, i] })}
                        >
                          {choice.label}
                        </button>
                      </li>
                    ))}
                  </ol>
                )}
              <h3>Who is where</h3>
              <table>
                <thead>
                  <tr>
                    <th scope="col">Who</th>
                    <th scope="col">State</th>
                    <th scope="col">With</th>
                  </tr>
                </thead>
                <tbody>
                  {state.parties.map((p) => (
                    <tr key={p.id}>
                      <th scope="row">{p.id}</th>
                      <td>{p.state}</td>
                      <td class="quiet">{p.detail ?? ""}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <div>
              <h3>What happened</h3>
              <Diagram steps={state.steps} at={state.steps.length} />
            </div>
          </div>
        </>
      )}
    </section>
  );
}
