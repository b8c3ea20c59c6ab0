import { type ChartLayout, TrackedCharts } from "../../charts/mod.ts";
import type { JournalRecord } from "../../journal/mod.ts";
import { clusterKernel, machines } from "../../machines/mod.ts";
import type { FoundTrace } from "../explore.ts";
import { linesOf, type LoadedRun, readDropped, servedRecord } from "../model/load.ts";
import { type Moment, RunHistory } from "../model/run.ts";
import type { Observation, RunHead } from "../source.ts";
import { follow } from "./events.ts";

export const VIEWS = [
  "cluster",
  "charts",
  "journal",
  "sequence",
  "next",
  "compare",
  "explore",
] as const;
export type View = (typeof VIEWS)[number];

export interface Info {
  readonly name: string;
  readonly live: boolean;
  readonly run: string | null;
  /** The last record when the page asked. */
  readonly last: number;
  readonly commands: boolean;
  readonly explore: {
    readonly name: string;
    readonly summary: string;
    readonly traces: readonly FoundTrace[];
  } | null;
}

/** Everything that the page is drawn from. Replaced as a whole on every change. */
export interface State {
  readonly phase: "loading" | "ready" | "error";
  readonly error?: string;
  readonly info: Info | undefined;
  /** What feeds the page: a server that goes on, a server being looked for, or files. */
  readonly connection: "live" | "reconnecting" | "still" | "file";
  readonly name: string;
  readonly remarks: readonly string[];
  readonly history: RunHistory | undefined;
  /** How much of a long journal was read so far. */
  readonly reading: { readonly done: number; readonly total: number } | undefined;
  /** Counts appends, so that views know when there is more. */
  readonly version: number;
  /** The moment shown; undefined follows the newest. */
  readonly seq: number | undefined;
  readonly view: View;
  /** The search field is asked for; it takes the focus as soon as it is there. */
  readonly searching: boolean;
  /** The instance looked at in the charts. */
  readonly of: string | undefined;
  readonly path: readonly number[];
  readonly layouts: Readonly<Record<string, ChartLayout>> | undefined;
  /** Why there are no layouts. */
  readonly unlaid: string | undefined;
  readonly other: { readonly name: string; readonly run: LoadedRun } | undefined;
  readonly observations: readonly Observation[];
}

const kernel = clusterKernel({ memoLimit: 200_000 });
export const trackedCharts = new TrackedCharts(machines);

const token = takeToken();
const listeners = new Set<() => void>();
let unfollow: (() => void) | undefined;

export let state: State = {
  phase: "loading",
  info: undefined,
  connection: "still",
  name: "",
  remarks: [],
  history: undefined,
  reading: undefined,
  searching: false,
  version: 0,
  layouts: undefined,
  unlaid: undefined,
  other: undefined,
  observations: [],
  ...fromUrl(),
};

export function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function update(change: Partial<State>): void {
  const moved = "seq" in change || "view" in change || "of" in change || "path" in change;
  state = { ...state, ...change };
  if (moved) toUrl();
  for (const listener of listeners) listener();
}

// ---- the moment shown -------------------------------------------------------------------------------------------

let shown: { history: RunHistory; seq: number; version: number; moment: Moment } | undefined;

/** The moment that the whole page shows. */
export function moment(): Moment | undefined {
  const { history, seq, version } = state;
  if (history === undefined) return undefined;
  const wanted = seq ?? history.last;
  const fits = shown?.history === history && shown.seq === wanted &&
    (seq !== undefined || shown.version === version);
  if (!fits) shown = { history, seq: wanted, version, moment: history.at(wanted) };
  return shown!.moment;
}

/** Goes to a record; the newest one is followed. */
export function goTo(seq: number): void {
  const { history } = state;
  if (history === undefined) return;
  const wanted = Math.min(Math.max(seq, history.first - 1), history.last);
  update({ seq: wanted >= history.last ? undefined : wanted });
}

// ---- where runs come from ---------------------------------------------------------------------------------------

export const headers = (): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };

export const hasToken = (): boolean => token !== undefined;

async function ask<T>(path: string): Promise<T> {
  const response = await fetch(path, { headers: headers() });
  if (!response.ok) {
    const { error } = await response.json() as { error?: string };
    throw new Error(error ?? `${path}: answer ${response.status}`);
  }
  return await response.json() as T;
}

/** Asks the server for its run and follows it. */
export async function start(): Promise<void> {
  try {
    const info = await ask<Info>("/api/info");
    const read = await readRun(info);
    update({ info, ...(info.explore && read === 0 ? { view: "explore" } : {}) });
    if (info.live) followRun(info.run);
    void askLayouts();
  } catch (error) {
    update({ phase: "error", error: (error as Error).message });
  }
}

/** Layouts take a server a second when it has just started. */
async function askLayouts(): Promise<void> {
  if (state.layouts !== undefined) return;
  try {
    update({ layouts: await ask<Record<string, ChartLayout>>("/api/charts"), unlaid: undefined });
  } catch (error) {
    update({ unlaid: (error as Error).message });
  }
}

function followRun(run: string | null): void {
  let waiting: JournalRecord[] = [];
  unfollow?.();
  unfollow = follow({
    url: "/api/events",
    headers: headers(),
    after: () => waiting.at(-1)?.seq ?? state.history?.last ?? 0,
    state: (connection) => update({ connection }),
    again: async () => {
      const info = await ask<Info>("/api/info");
      if (info.run === run || run === null) return true;
      void start();
      return false;
    },
    receive: (batch) => {
      for (const { event, data } of batch) {
        if (event === "observations") update({ observations: JSON.parse(data) as Observation[] });
        else if (event === "record") waiting.push(servedRecord(data));
      }
      if (waiting.length === 0) return;
      const taken = waiting;
      waiting = [];
      if (state.history === undefined || state.history.records.length === 0) {
        // The run began after the page was opened: its head is needed too.
        void start();
        return;
      }
      state.history.append(taken);
      update({ version: state.version + 1 });
    },
  });
}

/** For how long records are folded before the page may answer, and until it is drawn again (milliseconds). */
const SLICE_MS = 40;
const DRAW_MS = 400;

/**
 * Folds the run of the server as its lines arrive, so that the page answers from the first ones on. Returns how many records
 * there were.
 */
async function readRun(info: Info): Promise<number> {
  const response = await fetch("/api/journal", { headers: headers() });
  const lines = linesOf(response.body!);
  const first = await lines.next();
  const head = JSON.parse(first.done ? "null" : first.value) as RunHead | null;
  const history = new RunHistory(kernel, trackedCharts, head?.checkpoint);
  const show = (reading: boolean): void =>
    update({
      phase: "ready",
      info,
      history,
      name: info.name,
      connection: info.live ? "live" : "still",
      remarks: [],
      reading: reading ? { done: history.last, total: info.last } : undefined,
      version: state.version + 1,
    });
  let answered = performance.now();
  let drawn = 0;
  for await (const line of lines) {
    if (line !== "") history.append([servedRecord(line)]);
    const now = performance.now();
    if (now - answered < SLICE_MS) continue;
    if (now - drawn > DRAW_MS) {
      drawn = now;
      show(true);
    }
    await pause();
    answered = performance.now();
  }
  show(false);
  return history.records.length;
}

/** Folds a journal from files, slice by slice. */
async function showFiles(run: LoadedRun, name: string): Promise<void> {
  const history = new RunHistory(kernel, trackedCharts, run.head?.checkpoint);
  const total = run.records.length;
  for (let done = 0; done < total || done === 0; done += 5000) {
    history.append(run.records.slice(done, done + 5000));
    const rest = total - history.records.length;
    update({
      phase: "ready",
      history,
      name,
      connection: "file",
      remarks: run.remarks,
      reading: rest > 0 ? { done: history.records.length, total } : undefined,
      version: state.version + 1,
    });
    if (rest > 0) await pause();
    if (state.history !== history) return; // another run was opened meanwhile
  }
}

/** Lets the browser draw and answer. */
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** Shows (or compares with) a journal that was dropped or chosen. */
export async function openFiles(files: readonly File[], as: "run" | "other"): Promise<void> {
  try {
    const read = await Promise.all(
      files.map(async (f) => ({ name: f.name, bytes: new Uint8Array(await f.arrayBuffer()) })),
    );
    const run = readDropped(read);
    const name = files.length === 1 ? files[0]!.name : `${files.length} files`;
    if (as === "other") update({ other: { name, run }, view: "compare" });
    else {
      unfollow?.();
      update({ seq: undefined, of: undefined });
      await showFiles(run, name);
    }
  } catch (error) {
    update({ remarks: [`This cannot be shown: ${(error as Error).message}`] });
  }
}

/** Sends a command and gives the answer in words. */
export async function send(command: { type: string; [member: string]: unknown }): Promise<string> {
  const response = await fetch("/api/command", {
    method: "POST",
    headers: { ...headers(), "content-type": "application/json" },
    body: JSON.stringify(command),
  });
  const answer = await response.json() as { text?: string; error?: string };
  return answer.text ?? answer.error ?? `answer ${response.status}`;
}

// ---- the address ------------------------------------------------------------------------------------------------

function fromUrl(): Pick<State, "seq" | "view" | "of" | "path"> {
  const query = new URLSearchParams(location.search);
  const seq = query.get("seq");
  const view = query.get("view") as View;
  return {
    seq: seq === null ? undefined : Number(seq),
    view: VIEWS.includes(view) ? view : "cluster",
    of: query.get("of") ?? undefined,
    path: (query.get("path") ?? "").split(".").filter(Boolean).map(Number),
  };
}

function toUrl(): void {
  const query = new URLSearchParams();
  if (state.view !== "cluster") query.set("view", state.view);
  if (state.of !== undefined) query.set("of", state.of);
  if (state.seq !== undefined) query.set("seq", String(state.seq));
  if (state.path.length > 0) query.set("path", state.path.join("."));
  const text = query.toString();
  const url = location.pathname + (text && `?${text}`);
  if (url !== location.pathname + location.search) history.replaceState(null, "", url);
}

/** The token comes behind the `#` once and is kept for this tab. */
function takeToken(): string | undefined {
  const given = /[#&]token=([^&]+)/.exec(location.hash)?.[1];
  if (given !== undefined) {
    sessionStorage.setItem("muster-token", given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return given ?? sessionStorage.getItem("muster-token") ?? undefined;
}
