/** Durations, exits and counts in words. */

/** `850 ms`, `3.2 s`, `2 min 5 s`, `1 h 4 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1).replace(/\.0$/, "")} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) {
    const seconds = Math.round((ms - minutes * 60_000) / 1000);
    return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
  }
  const rest = minutes % 60;
  return rest === 0 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60)} h ${rest} min`;
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** `exited with code 3`, `was killed by SIGKILL`, `ended with a status that nobody knows any more`. */
export const exitText = ({ code, signal }: Exit): string =>
  signal !== null
    ? `was killed by ${signal}`
    : code !== null
    ? `exited with code ${code}`
    : "ended with a status that nobody knows any more";

/** `rank 3`, `ranks 0, 2 and 5`. */
export function rankList(ranks: readonly number[]): string {
  if (ranks.length === 1) return `rank ${ranks[0]}`;
  const shown = ranks.length > 12 ? [...ranks.slice(0, 10), `${ranks.length - 10} more`] : ranks;
  return `ranks ${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}`;
}
