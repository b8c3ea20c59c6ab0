import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Banner } from "./ui/banner.tsx";
import { ChartsView } from "./ui/charts.tsx";
import { ClusterView } from "./ui/cluster.tsx";
import { CompareView } from "./ui/compare.tsx";
import { ExploreView } from "./ui/explore.tsx";
import { JournalView } from "./ui/journal.tsx";
import { Keys, useKeys } from "./ui/keys.tsx";
import { NextView } from "./ui/next.tsx";
import { SequenceView } from "./ui/sequence.tsx";
import { Timeline } from "./ui/timeline.tsx";
import { useStore } from "./hooks.ts";
import { openFiles, type State, update, type View } from "./store.ts";

const TITLES: Readonly<Record<View, string>> = {
  cluster: "Cluster",
  charts: "Charts",
  journal: "Journal",
  sequence: "Sequence",
  next: "What next",
  compare: "Compare",
  explore: "Explore",
};

export function App() {
  const state = useStore();
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp((shown) => !shown));
  const dropping = useDrop();
  const views = (Object.keys(TITLES) as View[])
    .filter((view) =>
      view === "explore" ? state.info?.explore : !state.info?.explore || hasRun(state)
    );
  return (
    <div class={dropping ? "page dropping" : "page"}>
      <header class="top">
        <div class="brand">
          <h1>Muster</h1>
          <span class="source" title={state.name}>{state.name}</span>
          <Connection state={state} />
          <button type="button" class="quiet" onClick={() => setHelp(true)} aria-haspopup="dialog">
            Keys
          </button>
        </div>
        {state.view !== "explore" && <Banner />}
        {state.view !== "explore" && <Timeline />}
        <nav aria-label="Views">
          {views.map((view, i) => (
            <button
              key={view}
              type="button"
              aria-current={state.view === view ? "page" : undefined}
              title={`Key ${i + 1}`}
              onClick={() => update({ view })}
            >
              {TITLES[view]}
            </button>
          ))}
        </nav>
      </header>
      <main id="main" aria-label={TITLES[state.view]}>
        {state.remarks.map((text) => <p class="remark" role="status" key={text}>{text}</p>)}
        {state.reading && (
          <p class="quiet" role="status">
            Reading: {state.reading.done.toLocaleString("en")} of{" "}
            {state.reading.total.toLocaleString("en")} records…
          </p>
        )}
        <Main state={state} />
      </main>
      {help && <Keys close={() => setHelp(false)} />}
      {dropping && <div class="drop" aria-hidden="true">Drop the journal here</div>}
    </div>
  );
}

function Main({ state }: { state: State }): ComponentChildren {
  if (state.phase === "loading") return <p class="empty">Reading the journal…</p>;
  if (state.phase === "error") {
    return (
      <div class="empty bad">
        <p>{state.error}</p>
        <OpenFile />
      </div>
    );
  }
  if (state.view === "explore") return <ExploreView />;
  if (!state.history || state.history.records.length === 0) {
    return (
      <div class="empty">
        <p>
          {state.connection === "live"
            ? "The coordinator has recorded nothing yet. This page goes on by itself when it does."
            : "There is no run here yet. Drop a journal (its .jsonl files) anywhere on this page."}
        </p>
        <OpenFile />
      </div>
    );
  }
  switch (state.view) {
    case "cluster":
      return <ClusterView />;
    case "charts":
      return <ChartsView />;
    case "journal":
      return <JournalView />;
    case "sequence":
      return <SequenceView />;
    case "next":
      return <NextView />;
    case "compare":
      return <CompareView />;
  }
}

const hasRun = ({ history }: State): boolean => history !== undefined && history.records.length > 0;

export function OpenFile({ as = "run" }: { as?: "run" | "other" }) {
  return (
    <label class="file">
      Open a journal…
      <input
        type="file"
        multiple
        accept=".jsonl,.json"
        onChange={(e) => void openFiles([...(e.currentTarget.files ?? [])], as)}
      />
    </label>
  );
}

function Connection({ state }: { state: State }) {
  const words = {
    live: "live",
    reconnecting: "connection lost, trying again",
    still: "recorded",
    file: "from a file",
  }[state.connection];
  return <span class={`connection ${state.connection}`} role="status">{words}</span>;
}

function useDrop(): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const drag = (e: DragEvent) => {
      if (![...(e.dataTransfer?.types ?? [])].includes("Files")) return;
      e.preventDefault();
      setOver(true);
    };
    const leave = (e: DragEvent) => {
      if (e.relatedTarget === null) setOver(false);
    };
    const drop = (e: DragEvent) => {
      e.preventDefault();
      setOver(false);
      void openFiles([...(e.dataTransfer?.files ?? [])], "run");
    };
    addEventListener("dragover", drag);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", drag);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, []);
  return over;
}
