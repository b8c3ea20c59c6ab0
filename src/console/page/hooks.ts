import { useEffect, useState } from "preact/hooks";
import { state, subscribe } from "./store.ts";

/** Draws again on every change of the page's state. */
export function useStore(): typeof state {
  const [, redraw] = useState(0);
  useEffect(() => {
    let asked = false;
    return subscribe(() => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        redraw((n) => n + 1);
      });
    });
  }, []);
  return state;
}

/** Wall-clock milliseconds: those of the moment shown, or the present when a live run's newest moment is shown. */
export function useNow(live: boolean, at: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [live]);
  return live ? Math.max(now, at) : at;
}
