import { useEffect, useRef } from "preact/hooks";
import { MARK } from "../../model/run.ts";
import { goTo, moment, state, update, type View, VIEWS } from "../store.ts";

const KEYS: readonly (readonly [string, string])[] = [
  ["← →", "one record back, on"],
  ["Shift ← →", "ten records"],
  ["Page up, Page down", "a hundred records"],
  ["Home, End", "the beginning, the newest"],
  ["n p", "next, previous problem"],
  ["c", "next record that changed a state"],
  ["1 … 7", "views"],
  ["/", "search the journal"],
  ["?", "this list"],
];

/** Keys work everywhere but in fields that take text. */
export function useKeys(help: () => void): void {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      const typing = target.matches("textarea, select, input:not([type=range])");
      if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
      if (!act(e, help)) return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function act(e: KeyboardEvent, help: () => void): boolean {
  const { history, view } = state;
  if (e.key === "?") {
    help();
    return true;
  }
  const chosen = VIEWS[Number(e.key) - 1];
  if (chosen && (chosen !== "explore" || state.info?.explore) && view !== "explore") {
    update({ view: chosen as View });
    return true;
  }
  if (e.key === "/") {
    update({ view: "journal", searching: true });
    return true;
  }
  if (!history || view === "explore") return false;
  const seq = moment()?.seq ?? 0;
  const seek = (mark: number, direction: 1 | -1) => goTo(history.seek(seq, mark, direction) ?? seq);
  switch (e.key) {
    case "ArrowLeft":
      goTo(seq - (e.shiftKey ? 10 : 1));
      return true;
    case "ArrowRight":
      goTo(seq + (e.shiftKey ? 10 : 1));
      return true;
    case "PageUp":
      goTo(seq - 100);
      return true;
    case "PageDown":
      goTo(seq + 100);
      return true;
    case "Home":
      goTo(history.first - 1);
      return true;
    case "End":
      update({ seq: undefined });
      return true;
    case "n":
      seek(MARK.note | MARK.failure, 1);
      return true;
    case "p":
      seek(MARK.note | MARK.failure, -1);
      return true;
    case "c":
      seek(MARK.moved, 1);
      return true;
    default:
      return false;
  }
}

export function Keys({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
