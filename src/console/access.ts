import { randomBytes, timingSafeEqual } from "node:crypto";
import { Buffer } from "node:buffer";

/** Who may ask what. */
export interface Access {
  readonly token: string;
  /** Other machines can reach this console: then nothing is told without the token. */
  readonly exposed: boolean;
}

/** Addresses that only this machine reaches. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);

export const newToken = (): string => randomBytes(16).toString("hex");

/**
 * Why a request is refused, or undefined.
 *
 * - On this machine only: reading is free, but only by the machine's own names, so that no foreign page reaches it by a name
 *   that it made point here. Commands need the token.
 * - Exposed: everything under `/api` needs the token.
 */
export function refusal(
  access: Access,
  request: Request,
  api: boolean,
): { readonly status: 401 | 403; readonly text: string } | undefined {
  const url = new URL(request.url);
  const host = (request.headers.get("host") ?? url.host).replace(/:\d+$/, "").replace(
    /^\[|\]$/g,
    "",
  );
  if (!access.exposed && !isLoopback(host)) {
    return { status: 403, text: `this console answers to this machine only, not to ${host}` };
  }
  const origin = request.headers.get("origin");
  if (origin !== null && new URL(origin).host !== (request.headers.get("host") ?? url.host)) {
    return { status: 403, text: "a page of another origin may not ask here" };
  }
  if (!api || (request.method === "GET" && !access.exposed)) return undefined;
  const given = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  return sameText(given, access.token) ? undefined : {
    status: 401,
    text: "the token is missing or wrong: open the address that muster console printed",
  };
}

function sameText(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}
