/**
 * The HTTP API: what vLLM's own external-load-balancer servers answer to an orchestrator, and what an operator wants beside it.
 *
 * | path | what |
 * |---|---|
 * | `POST /scale_elastic_ep`, `POST /is_scaling_elastic_ep` | as the original's, bodies and status codes (wire spec, 6.4 and 7.9) |
 * | `GET /operations/{id}`, `POST /operations/{id}/abort` | an operation's record; ask it to end |
 * | `POST /engines/restart` | start all engines anew, as one group |
 * | `GET /status`, `/livez`, `/startupz`, `/readyz` | the cluster; whether this process lives, has started, serves |
 * | `GET /metrics`, `/events` | Prometheus; server-sent events, resumable by `Last-Event-ID` |
 */
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { streamSSE } from "hono/streaming";
import { type Scaler, ScalingFailed, ScalingRefused } from "../host/scaler.ts";
import type { OperationRecord } from "../view/scaling.ts";
import { type ClusterStatus, serves } from "../view/status.ts";
import { grants } from "./access.ts";
import { Feed } from "./feed.ts";
import { Metrics } from "./metrics.ts";
import { scaleRequestOf } from "./requests.ts";

/** The cluster behind the service. */
export interface ServiceCluster {
  /** Null for a cluster that keeps its size. */
  readonly scaling: Scaler | null;
  /** Names this run: `expected_instance_id` is held against it. */
  readonly instance: string;
  status(): ClusterStatus;
  /** Resolves with true when these ranks have no requests any more, with false when the time is over. Rejects where nobody knows. */
  drained?(ranks: readonly number[], timeoutMs: number): Promise<boolean>;
  /** Everything that happens. */
  onEvent(listener: (event: { readonly type: string }) => void): () => void;
}

export interface ServiceOptions {
  readonly cluster: ServiceCluster;
  /** Whoever asks has to send it: `Authorization: Bearer <token>`. */
  readonly token?: string;
}

export interface Service {
  readonly app: Hono;
  close(): void;
}

const BODY_LIMIT = 64 * 1024;
const SCALING_NOW = "The model is currently scaling. Please try again later.";
const RETIRED = "This data-parallel rank has been retired and is awaiting shutdown.";
/** Probes are asked by what has no token. */
const OPEN_PATHS = new Set(["/livez", "/startupz", "/readyz", "/health"]);

export function createService({ cluster, token }: ServiceOptions): Service {
  const app = new Hono();
  const feed = new Feed();
  const metrics = new Metrics(cluster);
  const draining: Draining = { now: null };
  const stops = [
    cluster.onEvent((event) => feed.push(event.type, event)),
    ...(cluster.scaling === null ? [] : [followOperations(cluster.scaling, feed, metrics)]),
  ];

  app.use(async (c, next) => {
    if (token !== undefined && !OPEN_PATHS.has(c.req.path)) {
      if (!grants(c.req.header("authorization"), token)) {
        return c.json({ error: "a token is needed: Authorization: Bearer <token>" }, 401, {
          "WWW-Authenticate": "Bearer",
        });
      }
    }
    await next();
  });
  app.use(bodyLimit({
    maxSize: BODY_LIMIT,
    onError: (c) => c.json({ detail: `a body has at most ${BODY_LIMIT} bytes` }, 413),
  }));

  app.post("/scale_elastic_ep", (c) => scale(c, cluster, draining));
  app.post(
    "/is_scaling_elastic_ep",
    (c) =>
      c.json(
        draining.now === null
          ? upstreamStatus(cluster)
          : { ...upstreamStatus(cluster), is_scaling_elastic_ep: true, phase: "preparing" },
      ),
  );

  app.get("/operations/:id", (c) => {
    const record = cluster.scaling?.record(c.req.param("id"));
    return record === undefined ? unknown(c) : c.json(record);
  });
  app.post("/operations/:id/abort", async (c) => {
    const operation = cluster.scaling?.find(c.req.param("id"));
    if (operation === undefined) return unknown(c);
    const { phase } = operation.record();
    if (phase === "completed" || phase === "failed") {
      return c.json({ error: `the operation is ${phase}`, operation: operation.record() }, 409);
    }
    await operation.abort(await reasonIn(c));
    return c.json(operation.record(), 202);
  });

  app.post("/engines/restart", async (c) => {
    const { scaling } = cluster;
    if (scaling === null) return c.json({ detail: "this cluster keeps its engines" }, 400);
    try {
      return c.json(
        { message: "all engines start anew", by_hand: await scaling.restartEngines() },
        202,
      );
    } catch (error) {
      if (error instanceof ScalingRefused) return c.json({ detail: error.message }, 409);
      throw error;
    }
  });

  app.get(
    "/status",
    (c) =>
      c.json({
        ...cluster.status(),
        scaling: cluster.scaling?.status() ?? null,
        draining: draining.now,
      }),
  );
  app.get("/livez", (c) => c.text("ok"));
  app.get("/health", (c) => c.text("ok"));
  app.get("/startupz", (c) => probe(c, ["formed"].includes(cluster.status().phase), cluster));
  app.get(
    "/readyz",
    (c) =>
      probe(
        c,
        serves(cluster.status()) && cluster.scaling?.status().running == null &&
          cluster.scaling?.status().retired !== true,
        cluster,
      ),
  );
  app.get(
    "/metrics",
    async (c) => c.text(await metrics.text(), 200, { "Content-Type": metrics.contentType }),
  );
  app.get("/events", (c) => events(c, feed, cluster));

  app.notFound((c) => {
    const scaling = cluster.scaling?.status();
    if (scaling?.retired === true) return c.json({ error: RETIRED }, 503);
    return scaling?.running == null && draining.now === null
      ? c.json({ error: `there is no ${c.req.method} ${c.req.path}` }, 404)
      : c.json({ error: SCALING_NOW }, 503);
  });
  app.onError((error, c) => c.json({ error: error.message }, 500));
  return { app, close: () => stops.forEach((stop) => stop()) };
}

const unknown = (c: Context): Response =>
  c.json({ error: "there is no such operation, or it ended long ago" }, 404);

const probe = (c: Context, fine: boolean, cluster: ServiceCluster): Response =>
  fine ? c.text("ok") : c.text(cluster.status().phase, 503);

async function reasonIn(c: Context): Promise<string> {
  const body = await c.req.json().catch(() => ({})) as { reason?: unknown };
  return typeof body.reason === "string" ? body.reason : "aborted over HTTP";
}

/** Ranks that are given time to finish their requests before they leave. One at a time. */
interface Draining {
  now: { readonly target: number; readonly ranks: readonly number[] } | null;
}

/**
 * Waits until ranks that are to leave have finished their requests, before anything is prepared: when the time is over nothing has happened.
 * Whoever admits requests is to give them no new ones meanwhile. Undefined when all is well, otherwise the answer.
 */
async function drain(
  c: Context,
  cluster: ServiceCluster,
  draining: Draining,
  target: number,
  seconds: number,
): Promise<Response | undefined> {
  const { size, running, fronts } = cluster.scaling!.status();
  if (target >= size || running !== null) return undefined;
  // Rank 0 knows the loads of all, and begins when those that leave are idle; the others wait for rank 0.
  if (fronts !== null && !fronts.includes(0)) return undefined;
  if (cluster.drained === undefined) {
    return c.json({ detail: "drain_timeout: nobody here knows the requests of ranks" }, 400);
  }
  if (draining.now !== null) {
    return c.json({ detail: `ranks are being drained for size ${draining.now.target}` }, 409);
  }
  const ranks = Array.from({ length: size - target }, (_, i) => target + i);
  draining.now = { target, ranks };
  try {
    if (await cluster.drained(ranks, seconds * 1000)) return undefined;
    const detail = `Scale failed due to request drain timeout after ${seconds} seconds`;
    return c.json({ detail }, 408);
  } catch (error) {
    return c.json({ detail: `drain_timeout: ${(error as Error).message}` }, 400);
  } finally {
    draining.now = null;
  }
}

async function scale(c: Context, cluster: ServiceCluster, draining: Draining): Promise<Response> {
  const read = scaleRequestOf(await c.req.text());
  if (!read.ok) return c.json({ detail: read.detail }, 400);
  const { target, operation: id, expectedInstance, deadlineMs, retire, drainTimeout } = read.value;
  if (expectedInstance !== undefined && expectedInstance !== cluster.instance) {
    return c.json({ detail: `this is instance ${cluster.instance}, not ${expectedInstance}` }, 409);
  }
  const { scaling } = cluster;
  if (scaling === null) return c.json({ detail: "this cluster keeps its size" }, 400);
  if (drainTimeout !== undefined) {
    const refused = await drain(c, cluster, draining, target, drainTimeout);
    if (refused !== undefined) return refused;
  }
  try {
    const operation = await scaling.scale(target, {
      ...(id === undefined ? {} : { operation: id }),
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
      ...(retire === undefined ? {} : { retire }),
    });
    const record = await operation.completed();
    return c.json(
      id === undefined
        ? { message: `Scaled to ${target} data parallel engines`, operation_id: record.operation }
        : {
          ...upstreamStatus(cluster, record),
          message: `Elastic EP operation is ${record.phase} for data parallel size ${target}`,
        },
    );
  } catch (error) {
    if (error instanceof ScalingRefused) {
      if (scaling.status().retired) return c.json({ error: RETIRED }, 503);
      return c.json(
        { detail: error.message, ...(error.running === null ? {} : { running: error.running }) },
        error.running === null ? 400 : 409,
      );
    }
    if (error instanceof ScalingFailed) {
      return c.json(
        { detail: "Scale failed", reason: error.message, operation: error.record },
        500,
      );
    }
    throw error;
  }
}

/** The status in the original's members (wire spec, 7.9). */
export function upstreamStatus(
  cluster: ServiceCluster,
  about?: OperationRecord,
): Record<string, string | number | boolean | null> {
  const status = cluster.scaling?.status();
  const record = about ?? status?.running ?? status?.last ?? null;
  const phase = record === null ? "idle" : PHASES[record.phase];
  return {
    is_scaling_elastic_ep: status?.running != null,
    operation_id: record?.operation ?? null,
    epoch: record?.epoch ?? null,
    phase,
    requested_data_parallel_size: record?.target ?? null,
    effective_data_parallel_size: record === null
      ? status?.size ?? cluster.status().ranks.length
      : record.effectiveSize,
    topology_known: record === null || record.effectiveSize !== null,
    error: record?.firstError?.text ?? null,
  };
}

/** Our phases in the original's words: `aborted` is `failed` there. */
const PHASES: Readonly<Record<OperationRecord["phase"], string>> = {
  preparing: "preparing",
  committing: "committing",
  aborting: "preparing",
  settling: "committing",
  inDoubt: "committing",
  completed: "completed",
  failed: "failed",
};

/** One event for every change of the running operation, and one for its end. */
function followOperations(scaling: Scaler, feed: Feed, metrics: Metrics): () => void {
  let last = "";
  let running: string | null = scaling.status().running?.operation ?? null;
  return scaling.onStep(() => {
    const status = scaling.status();
    const ended = running !== null && status.running?.operation !== running;
    const record = ended ? scaling.record(running!) ?? null : status.running;
    running = status.running?.operation ?? null;
    if (record === null) return;
    const text = JSON.stringify([
      record.operation,
      record.phase,
      record.waitingFor,
      record.silentEngines,
      record.firstError,
    ]);
    if (text !== last) feed.push("operation", record);
    last = text;
    if (ended) metrics.ended(record.phase);
  });
}

function events(c: Context, feed: Feed, cluster: ServiceCluster): Response {
  const asked = c.req.header("last-event-id");
  const since = asked === undefined ? feed.last : Number(asked);
  return streamSSE(c, async (stream) => {
    const queue = [...feed.since(Number.isInteger(since) ? since : -1) ?? []];
    let wake = () => {};
    let open = true;
    const stop = feed.listen((event) => {
      queue.push(event);
      wake();
    });
    stream.onAbort(() => {
      open = false;
      wake();
    });
    if (feed.since(since) === undefined) {
      // What was missed is not known any more: here is how things stand.
      await stream.writeSSE({
        id: String(feed.last),
        event: "reset",
        data: JSON.stringify({ ...cluster.status(), scaling: cluster.scaling?.status() ?? null }),
      });
    }
    try {
      while (open) {
        const event = queue.shift();
        if (event === undefined) {
          await new Promise<void>((resolve) => wake = resolve);
          continue;
        }
        const { id, type, data } = event;
        await stream.writeSSE({ id: String(id), event: type, data: JSON.stringify(data) });
      }
    } finally {
      stop();
    }
  });
}
