import { gzipSync } from "node:zlib";
import type { Explorer } from "./explore.ts";
import { page } from "./page.generated.ts";
import type { ConsoleSource } from "./source.ts";
import { type Access, refusal } from "./access.ts";

/** What the page may ask a running coordinator to do. */
export interface ConsoleCommand {
  readonly type: string;
  readonly [member: string]: unknown;
}

export interface ConsoleOptions {
  readonly source: ConsoleSource;
  readonly access: Access;
  readonly explorer?: Explorer;
  /** Carries a command out; absent where the source takes none. Its answer is shown to the operator. */
  readonly command?: (command: ConsoleCommand) => Promise<{ readonly text: string }>;
}

const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

const ASSETS: Readonly<Record<string, readonly [keyof typeof page, string]>> = {
  "/": ["html", "text/html; charset=utf-8"],
  "/page.js": ["js", "text/javascript; charset=utf-8"],
  "/page.css": ["css", "text/css; charset=utf-8"],
  "/api/charts": ["charts", "application/json; charset=utf-8"],
};

/**
 * The console as a fetch handler, for any server that speaks `Request` and `Response`.
 *
 * `GET /` and its two assets; `GET /api/info`, `/api/charts`, `/api/journal?from=`, `/api/events` (SSE, resumes by
 * `Last-Event-ID`), `/api/explore?path=`; `POST /api/command` (always with the token).
 */
export function consoleHandler(options: ConsoleOptions): (request: Request) => Promise<Response> {
  const { source, access, explorer } = options;
  const compressed = new Map<string, Uint8Array<ArrayBuffer>>();
  const asset = (path: string, request: Request): Response => {
    const [name, type] = ASSETS[path]!;
    if (!/\bgzip\b/.test(request.headers.get("accept-encoding") ?? "")) {
      return new Response(page[name], { headers: { ...HEADERS, "content-type": type } });
    }
    const body = compressed.get(path) ?? Uint8Array.from(gzipSync(page[name], { level: 9 }));
    compressed.set(path, body);
    return new Response(body, {
      headers: { ...HEADERS, "content-type": type, "content-encoding": "gzip" },
    });
  };
  return async (request) => {
    const url = new URL(request.url);
    const refused = refusal(access, request, url.pathname.startsWith("/api/"));
    if (refused) return json({ error: refused.text }, refused.status);
    if (request.method === "POST" && url.pathname === "/api/command") {
      return await command(options, request);
    }
    if (request.method !== "GET") return json({ error: "only GET is allowed here" }, 405);
    if (Object.hasOwn(ASSETS, url.pathname)) return asset(url.pathname, request);
    switch (url.pathname) {
      case "/api/info": {
        const head = await source.head();
        return json({
          name: explorer?.name ?? source.name,
          live: source.live,
          run: head?.header.run ?? null,
          last: source.last(),
          machines: head?.header.machines ?? {},
          commands: options.command !== undefined,
          explore: explorer === undefined
            ? null
            : { name: explorer.name, summary: explorer.summary, traces: explorer.traces },
        });
      }
      case "/api/journal":
        return journal(source, Number(url.searchParams.get("from") ?? 1));
      case "/api/events": {
        const last = request.headers.get("last-event-id") ?? url.searchParams.get("after") ?? "0";
        return events(source, Number(last), request.signal);
      }
      case "/api/explore":
        return explore(explorer, url.searchParams.get("path") ?? "");
      default:
        return json({ error: `there is nothing at ${url.pathname}` }, 404);
    }
  };
}

const json = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), {
    status,
    headers: { ...HEADERS, "content-type": "application/json; charset=utf-8" },
  });

/** First the head of the run, then its records, one line each. Written as the reader takes it. */
async function journal(source: ConsoleSource, from: number): Promise<Response> {
  const head = await source.head();
  const lines = source.lines(Number.isFinite(from) ? from : 1)[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let begun = false;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      let chunk = begun ? "" : JSON.stringify(head ?? null) + "\n";
      begun = true;
      let ended = false;
      while (chunk.length < 1 << 18) {
        const next = await lines.next();
        if (next.done) {
          ended = true;
          break;
        }
        chunk += next.value.text + "\n";
      }
      if (chunk !== "") controller.enqueue(encoder.encode(chunk));
      if (ended) controller.close();
    },
  });
  return new Response(body, { headers: { ...HEADERS, "content-type": "application/x-ndjson" } });
}

const HEARTBEAT_MS = 10_000;
const OBSERVE_MS = 1000;

/**
 * Records as server-sent events, each with its sequence number as id, so that a reader goes on where it was. A reader that is
 * slower than the run is not buffered for: it gets the next records when it takes them.
 */
function events(source: ConsoleSource, last: number, signal: AbortSignal): Response {
  const encoder = new TextEncoder();
  let sent = Number.isFinite(last) ? last : 0;
  let wake: () => void = () => {};
  let more = true;
  let beat = Date.now();
  let observed = "";
  const stops: (() => void)[] = [];
  const stop = (): void => stops.splice(0).forEach((f) => f());
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      stops.push(source.watch(() => {
        more = true;
        wake();
      }));
      const timer = setInterval(() => wake(), OBSERVE_MS);
      stops.push(() => clearInterval(timer));
      signal.addEventListener("abort", () => {
        stop();
        wake();
      });
      controller.enqueue(encoder.encode("retry: 1000\n\n"));
    },
    async pull(controller) {
      for (;;) {
        let chunk = "";
        if (more) {
          more = false;
          for await (const { seq, text } of source.lines(sent + 1)) {
            chunk += `id: ${seq}\nevent: record\ndata: ${text}\n\n`;
            sent = seq;
            if (chunk.length > 1 << 18) {
              more = true;
              break;
            }
          }
        }
        const now = JSON.stringify(source.observations?.() ?? []);
        if (now !== observed) {
          observed = now;
          if (now !== "[]") chunk += `event: observations\ndata: ${now}\n\n`;
        }
        if (chunk === "" && Date.now() - beat > HEARTBEAT_MS) chunk = ": alive\n\n";
        if (chunk !== "") {
          beat = Date.now();
          controller.enqueue(encoder.encode(chunk));
          return;
        }
        if (signal.aborted) return controller.close();
        await new Promise<void>((resolve) => wake = resolve);
      }
    },
    cancel: stop,
  });
  return new Response(body, {
    headers: { ...HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no" },
  });
}

function explore(explorer: Explorer | undefined, text: string): Response {
  if (explorer === undefined) return json({ error: "no model is being explored here" }, 404);
  const path = text === "" ? [] : text.split(".").map(Number);
  try {
    return json(explorer.at(path));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return json({ error: error.message }, 400);
  }
}

async function command(options: ConsoleOptions, request: Request): Promise<Response> {
  if (options.command === undefined) return json({ error: "this console takes no commands" }, 404);
  let given: ConsoleCommand;
  try {
    given = await request.json() as ConsoleCommand;
  } catch {
    return json({ error: "a command is JSON" }, 400);
  }
  try {
    return json(await options.command(given));
  } catch (error) {
    return json({ error: (error as Error).message }, 409);
  }
}
