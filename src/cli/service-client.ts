/** Asks a running coordinator over its HTTP API. */
import process from "node:process";
import type { Command } from "commander";
import { UsageError } from "./exit-codes.ts";

export interface ServiceFlags {
  readonly url: string;
  readonly token?: string;
}

export const DEFAULT_PORT = 8900;

/** Adds `--url` and `--token`. */
export const addServiceFlags = (command: Command): Command =>
  command
    .option("--url <url>", "the coordinator's API", `http://127.0.0.1:${DEFAULT_PORT}`)
    .option("--token <text>", "its token; MUSTER_TOKEN by default");

export interface Answer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any
  readonly body: any;
}

/** Nobody answers there, or not as Muster does. */
export class ServiceError extends Error {
  readonly code = "service-unreachable";
}

/** One request. @throws ServiceError when nobody answers */
export async function ask(
  { url, token = process.env["MUSTER_TOKEN"] }: ServiceFlags,
  method: "GET" | "POST",
  path: string,
  body?: unknown,
): Promise<Answer> {
  if (!URL.canParse(url)) {
    throw new UsageError(
      `--url ${url}: it must be an address such as http://127.0.0.1:${DEFAULT_PORT}`,
    );
  }
  const { patientRequest } = await import("../service/request.ts");
  let answer: { readonly status: number; readonly text: string };
  try {
    answer = await patientRequest({
      method,
      url: new URL(path, url),
      headers: {
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    const cause = message || code;
    if (method === "POST" && code === "ECONNRESET") {
      throw new ServiceError(
        `the coordinator at ${url} went away before it answered (${cause}): what was asked for may go on when it is back; "muster status" says how it stands`,
      );
    }
    throw new ServiceError(
      `nobody answers at ${url} (${cause}): start one with "muster serve --http", or give its --url`,
    );
  }
  const { status, text } = answer;
  try {
    return { status, body: JSON.parse(text) };
  } catch {
    return { status, body: { error: text.slice(0, 500) } };
  }
}

/** What an answer says went wrong. */
export const complaint = ({ status, body }: Answer): string =>
  String(body?.reason ?? body?.detail ?? body?.error ?? `HTTP status ${status}`);
