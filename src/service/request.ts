/** One HTTP request that may be answered late: scaling takes as long as models load, and `fetch` on Node gives up after five minutes. */
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";

export interface HttpRequest {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/** Resolves with the answer, however long it takes. Rejects when nobody answers, or with an `AbortError`. */
export function patientRequest(
  { method, url, headers = {}, body, signal }: HttpRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? overHttps : overHttp;
    const length = body === undefined
      ? {}
      : { "Content-Length": String(new TextEncoder().encode(body).length) };
    const options = { method, headers: { ...headers, ...length }, agent: false as const };
    const sent = send(url, signal === undefined ? options : { ...options, signal }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => text += chunk);
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
