/** Starts a cluster, shows it, and stops it cleanly: what `demo` and `serve` have in common. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import type { ConsoleServer } from "../console/mod.ts";
import { ClusterError, Coordinator, type CoordinatorOptions } from "../coordinator.ts";
import { recoveredText, reportText } from "../host/mod.ts";
import { ScalingFailed, ScalingRefused } from "../host/scaler.ts";
import type { Listening } from "../service/mod.ts";
import type { JournalStore } from "../journal/mod.ts";
import { FileStore } from "../journal/stores/mod.ts";
import type { LaunchStep } from "../drivers/processes.ts";
import {
  addressLines,
  ClusterScreen,
  failureLines,
  strangerLines,
  summaryLines,
} from "./cluster-screen.ts";
import { EXIT } from "./exit-codes.ts";
import { followOperations, underWayText } from "./operations-screen.ts";
import { terminal } from "./terminal.ts";

export interface RunCluster {
  readonly title?: string;
  readonly options: CoordinatorOptions;
  readonly json: boolean;
  /** The local page beside it; its address is printed. */
  readonly console?: { readonly host: string; readonly port: number };
  /** Until Ctrl-C. Otherwise the cluster is stopped when it has formed up. */
  readonly hold: boolean;
  /** Serves the HTTP API. */
  readonly http?: {
    readonly host: string;
    readonly port: number;
    readonly token: string | undefined;
  };
  /** Sizes to scale to, one after the other, once it has formed up. */
  readonly scaleTo?: readonly number[];
}

/** Runs it to its end and answers with the exit code. */
export async function runCluster(run: RunCluster): Promise<number> {
  const { assertGuarded } = await import("../service/mod.ts");
  const out = terminal();
  const { paint } = out;
  const say = run.json ? () => {} : (lines: readonly string[]) => {
    for (const line of lines) out.write(`${line}\n`);
  };
  const stop = new AbortController();
  const interrupt = () => stop.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt);
  // A process manager sends it to a whole group, and npm passes it on as well: twice is not more than once.
  process.on("SIGTERM", interrupt);

  if (run.http !== undefined) assertGuarded(run.http.host, tokenOf(run.http));

  const { options, store, temporary } = withStore(run);
  const discard = () => {
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  };
  const coordinator = await Coordinator.start(options).catch((error) => {
    discard();
    throw error;
  });
  if (run.title !== undefined) say([paint.bold(run.title), ""]);
  if (coordinator.earlier !== null) {
    say([paint.dim(`the run of before has ended and is kept in ${coordinator.earlier}`), ""]);
  }
  if (!coordinator.report.fresh) {
    const underWay = underWayText(coordinator);
    say([reportText(coordinator.report), ...(underWay === undefined ? [] : [underWay]), ""]);
  }
  const screen = run.json ? undefined : new ClusterScreen(out, () => coordinator.status());
  if (screen !== undefined) {
    coordinator.onEvent((event) => screen.event(event));
    followOperations(coordinator, paint, (line) => screen.note(line));
    coordinator.observe((seen) => {
      const { type, rank, step } = seen as LaunchStep;
      if (type === "launch-step" && rank !== null) screen.step(rank, step);
    });
  }
  if (screen !== undefined && !coordinator.report.fresh) {
    coordinator.recovered.then((report) => screen.note(recoveredText(report)), () => {});
  }

  let exit: number = EXIT.ok;
  let formed = false;
  let api: Listening | undefined;
  let page: ConsoleServer | undefined;
  try {
    page = await consoleOf(run, coordinator, store);
    if (page !== undefined) say([`console: ${page.address}`, ""]);
    if (run.http !== undefined) {
      api = await serveApi(coordinator, run.http);
      say([paint.dim(`  the API is at ${api.url}`)]);
    }
    await coordinator.ready({ signal: stop.signal });
    formed = true;
    for (const target of run.scaleTo ?? []) await scale(coordinator, target, stop.signal);
    if (run.hold) {
      const status = coordinator.status();
      screen?.note(
        [...summaryLines(status, paint, !coordinator.report.fresh), ...addressLines(status, paint)]
          .join("\n"),
      );
      const why = await brokenOrStopped(coordinator, stop.signal);
      if (why !== undefined) throw why;
    }
  } catch (error) {
    if (stop.signal.aborted) exit = run.hold && formed ? EXIT.ok : EXIT.interrupted;
    else if (coordinator.over && !(error instanceof ClusterError)) exit = EXIT.usage;
    else if (error instanceof ClusterError) exit = EXIT.failed;
    else if (error instanceof ScalingFailed || error instanceof ScalingRefused) {
      if (run.json) process.stderr.write(`muster: ${error.message}\n`);
      else say(["", paint.red(`✗ ${error.message}`)]);
      exit = EXIT.failed;
    } else throw error;
  } finally {
    const status = coordinator.status();
    screen?.end();
    await api?.close();
    if (status.failure !== null) say(["", ...failureLines(status.failure, paint)]);
    else if (status.phase === "formed" && !run.hold) say(["", ...summaryLines(status, paint)]);
    say(strangerLines(status, paint));
    await page?.close();
    await coordinator.close();
    discard();
    const left = coordinator.status().processes.filter((p) => p.state !== "ended").length;
    if (run.json) out.write(`${JSON.stringify(coordinator.status(), null, 2)}\n`);
    else if (status.processes.length > 0) {
      say([
        left === 0
          ? paint.dim(
            `  stopped: ${
              status.processes.length === 1 ? "1 process" : `${status.processes.length} processes`
            } ended, none is left`,
          )
          : paint.red(`  ${left} processes did not end`),
      ]);
    }
    if (coordinator.over) process.stderr.write(overText(coordinator, run.options.journal));
  }
  return exit;
}

/** A journal of a run that has ended was given to begin with. */
function overText(coordinator: Coordinator, journal: CoordinatorOptions["journal"]): string {
  const { failure } = coordinator.status();
  const where = typeof journal === "string" ? journal : "this journal";
  return `muster: the run in ${where} ${
    failure === null ? "was stopped" : `failed (${failure.code})`
  } before this start, and nothing was started: begin anew with --anew, or give another directory\n`;
}

const tokenOf = ({ token }: NonNullable<RunCluster["http"]>): string | undefined =>
  token ?? process.env["MUSTER_TOKEN"];

async function serveApi(
  coordinator: Coordinator,
  http: NonNullable<RunCluster["http"]>,
): Promise<Listening> {
  const { listen } = await import("../service/mod.ts");
  const { host, port } = http;
  const token = tokenOf(http);
  return listen({ cluster: coordinator, host, port, ...(token === undefined ? {} : { token }) });
}

/**
 * The console reads the journal that the coordinator writes: both are given the same store. A run that nobody keeps is
 * recorded in a temporary directory for it.
 */
function withStore(
  run: RunCluster,
): { options: CoordinatorOptions; store?: JournalStore; temporary?: string } {
  if (run.console === undefined) return { options: run.options };
  const { journal, durability } = run.options;
  if (typeof journal === "object") return { options: run.options, store: journal };
  const temporary = journal === undefined ? mkdtempSync(join(tmpdir(), "muster-run-")) : undefined;
  const directory = temporary ?? resolve(journal!);
  const store = new FileStore(directory, {
    durability: durability ?? (temporary === undefined ? "sync" : "memory"),
  });
  return {
    options: { directory, ...run.options, journal: store },
    store,
    ...(temporary === undefined ? {} : { temporary }),
  };
}

async function consoleOf(
  run: RunCluster,
  coordinator: Coordinator,
  store: JournalStore | undefined,
): Promise<ConsoleServer | undefined> {
  if (run.console === undefined || store === undefined) return undefined;
  const { coordinatorConsole } = await import("../console/mod.ts");
  return await coordinatorConsole(coordinator, store, run.console);
}

/** Scales while the cluster serves, until those who left are gone. */
async function scale(
  coordinator: Coordinator,
  target: number,
  signal: AbortSignal,
): Promise<void> {
  const operation = await coordinator.scale(target, { signal });
  const { safeToDelete } = await operation.completed();
  await gone(coordinator, safeToDelete);
}

/** Ranks that have left may still be ending: waits for their processes, but no longer than a leaver needs. */
function gone(coordinator: Coordinator, ranks: readonly number[]): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      clearTimeout(timer);
      off();
      resolve();
    };
    const look = () => {
      const leaving = coordinator.status().ranks
        .some((r) => ranks.includes(r.rank) && r.state === "leaving");
      if (!leaving) settle();
    };
    const timer = setTimeout(() => settle(), 5000);
    const off = coordinator.subscribe(look);
    look();
  });
}

/** Waits while the cluster serves. Resolves with a failure, or with nothing when it is to be stopped. */
function brokenOrStopped(
  coordinator: Coordinator,
  signal: AbortSignal,
): Promise<ClusterError | undefined> {
  return new Promise((resolve) => {
    const look = () => {
      const { failure } = coordinator.status();
      if (failure !== null) settle(new ClusterError(failure));
    };
    const off = coordinator.subscribe(look);
    const settle = (result: ClusterError | undefined) => {
      off();
      resolve(result);
    };
    if (signal.aborted) return settle(undefined);
    signal.addEventListener("abort", () => settle(undefined), { once: true });
    look();
  });
}
