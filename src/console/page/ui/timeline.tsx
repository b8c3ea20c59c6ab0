import { useEffect, useRef, useState } from "preact/hooks";
import { MARK } from "../../model/run.ts";
import { useStore } from "../hooks.ts";
import { goTo, moment, state as current, update } from "../store.ts";
import { clock } from "../words.ts";

/** Time travel: the slider, its buttons, and where problems are. */
export function Timeline() {
  const state = useStore();
  const { history } = state;
  const [playing, setPlaying] = useState(false);
  usePlay(playing, () => setPlaying(false));
  if (!history || history.records.length === 0) return null;
  const now = moment()!;
  const first = history.first - 1;
  const last = history.last;
  const jump = (mark: number, direction: 1 | -1) => {
    const found = history.seek(now.seq, mark, direction);
    if (found !== undefined) goTo(found);
  };
  return (
    <section class="timeline" aria-label="Time travel">
      <div class="buttons">
        <button type="button" onClick={() => goTo(now.seq - 1)} aria-label="Previous record">
          ‹
        </button>
        <button type="button" aria-pressed={playing} onClick={() => setPlaying(!playing)}>
          {playing ? "Pause" : "Play"}
        </button>
        <button type="button" onClick={() => goTo(now.seq + 1)} aria-label="Next record">›</button>
      </div>
      <div class="track">
        <input
          type="range"
          min={first}
          max={last}
          value={now.seq}
          aria-label="Moment of the run"
          aria-valuetext={`record ${now.seq} of ${last}, ${clock(now.at)}`}
          onInput={(e) => goTo(Number(e.currentTarget.value))}
        />
        <Problems />
      </div>
      <div class="where">
        <span>
          record <b>{now.seq}</b> of {last}
        </span>
        <time>{clock(now.at)}</time>
        <button type="button" class="small" onClick={() => jump(MARK.note | MARK.failure, -1)}>
          ‹ problem
        </button>
        <button type="button" class="small" onClick={() => jump(MARK.note | MARK.failure, 1)}>
          problem ›
        </button>
        {state.seq !== undefined && (
          <button
            type="button"
            class="small now"
            onClick={() => update({ seq: undefined })}
          >
            {state.connection === "live" ? "Back to live" : "To the end"}
          </button>
        )}
      </div>
    </section>
  );
}

/** Marks under the slider, drawn at the resolution of the screen. */
function Problems() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { history, version } = useStore();
  useEffect(() => {
    const c = canvas.current;
    const pen = c?.getContext("2d");
    if (!c || !pen || !history) return;
    const width = c.width = c.clientWidth;
    c.height = 6;
    const style = getComputedStyle(c);
    const total = Math.max(1, history.marks.length);
    const columns = new Uint8Array(width);
    history.marks.forEach((mark, i) => {
      const x = Math.min(width - 1, Math.floor((i + 1) / total * (width - 1)));
      columns[x]! |= mark;
    });
    columns.forEach((mark, x) => {
      if (!(mark & (MARK.note | MARK.failure))) return;
      pen.fillStyle = style.getPropertyValue(mark & MARK.failure ? "--bad" : "--warn");
      pen.fillRect(x, 0, mark & MARK.failure ? 3 : 1, 6);
    });
  }, [history, version]);
  return <canvas ref={canvas} class="problems" aria-hidden="true" />;
}

function usePlay(playing: boolean, stop: () => void): void {
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      if (current.seq === undefined) {
        const { history } = current;
        if (history && moment()?.seq === history.last) return stop();
      }
      goTo((moment()?.seq ?? 0) + 1);
      if (current.seq === undefined) stop();
    }, 250);
    return () => clearInterval(timer);
  }, [playing]);
}
