import { Buffer } from "node:buffer";
import http from "node:http";
import https from "node:https";
import { RayError } from "./error.ts";

export interface RayAddress {
  /** The dashboard, such as `http://10.0.0.1:8265`. */
  readonly url: string;
  readonly token?: string | undefined;
  /** For one request. Default 10,000. */
  readonly timeoutMs?: number | undefined;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

const TIMEOUT_MS = 10_000;
/** Pauses before the second, third and fourth try of a GET. */
const RETRY_MS = [100, 400, 1600];

/**
 * Ray's HTTP, one request at a time or many. It is `node:http` and not `fetch`: the latter always says
 * `sec-fetch-mode`, which Ray takes for a browser and refuses every POST with 405.
 */
export class RayHttp {
  readonly url: URL;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #agent: http.Agent;

  constructor({ url, token, timeoutMs }: RayAddress) {
    this.url = new URL(url);
    this.#token = token;
    this.#timeoutMs = timeoutMs ?? TIMEOUT_MS;
    const options = { keepAlive: true, maxSockets: 16 };
    this.#agent = this.url.protocol === "https:"
      ? new https.Agent(options)
      : new http.Agent(options);
  }

  /** Reads; a connection that fails, or a server in trouble, is asked again. */
  async get(path: string): Promise<Answer> {
    for (let attempt = 0;; attempt++) {
      try {
        const answer = await this.#request("GET", path);
        if (answer.status < 502 || attempt >= RETRY_MS.length) return answer;
      } catch (error) {
        if (attempt >= RETRY_MS.length) throw error;
      }
      await new Promise((done) => setTimeout(done, RETRY_MS[attempt]));
    }
  }

  /** Writes, once: who does not know whether it arrived must look. */
  post(path: string, body: unknown = {}): Promise<Answer> {
    return this.#request("POST", path, JSON.stringify(body));
  }

  delete(path: string): Promise<Answer> {
    return this.#request("DELETE", path);
  }

  close(): void {
    this.#agent.destroy();
  }

  #request(method: string, path: string, body?: string): Promise<Answer> {
    const { promise, resolve, reject } = deferred<Answer>();
    const headers: Record<string, string | number> = { accept: "application/json, text/plain" };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = Buffer.byteLength(body);
    }
    if (this.#token !== undefined) headers["authorization"] = `Bearer ${this.#token}`;
    const request = (this.url.protocol === "https:" ? https : http).request(
      new URL(path, this.url),
      { method, headers, agent: this.#agent },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", fail);
        response.on("end", () => {
          clearTimeout(timer);
          resolve({
            status: response.statusCode ?? 0,
            text: Buffer.concat(chunks).toString("utf8"),
          });
        });
      },
    );
    const where = `${method} ${this.url.origin}${path}`;
    const fail = (error: Error & { code?: string }) => {
      clearTimeout(timer);
      reject(new RayError("ray-unreachable", `${where}: ${error.code ?? error.message}`));
    };
    const timer = setTimeout(() => {
      reject(new RayError("ray-unreachable", `${where}: no answer in ${this.#timeoutMs} ms`));
      request.destroy();
    }, this.#timeoutMs);
    request.on("error", fail);
    request.end(body);
    return promise;
  }
}

function deferred<T>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** The JSON of a good answer, or a {@link RayError} that says what Ray meant. */
export function jsonOf(answer: Answer, what: string): unknown {
  if (answer.status !== 200) throw failed(answer, what);
  try {
    return JSON.parse(answer.text);
  } catch {
    throw new RayError("ray-unexpected", `${what}: the answer is not JSON`, answer.status);
  }
}

/** What an answer with another status than 200 means. */
export function failed({ status, text }: Answer, what: string): RayError {
  const reason = lastLine(text);
  if (status === 401 || status === 403) {
    const how = status === 401 ? "a token is wanted" : "the token is wrong";
    return new RayError("ray-unauthorised", `${what}: ${how}`, status);
  }
  const code = status >= 500 ? "ray-trouble" : "ray-refused";
  return new RayError(code, `${what}: ${reason || `status ${status}`}`, status);
}

/** The last line that says something: of a Python traceback that is the error itself. */
function lastLine(text: string): string {
  const line = text.trim().split("\n").map((l) => l.trim()).filter(Boolean).at(-1) ?? "";
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
}
