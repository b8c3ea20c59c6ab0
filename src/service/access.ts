/** Who may speak to the service: anybody on this machine, and elsewhere whoever has the token. */
import { createHash, timingSafeEqual } from "node:crypto";

/** The service would be open to others without a token. */
export class ServiceRefused extends Error {
  readonly code = "service-needs-token";
  constructor(host: string) {
    super(
      `listening on ${host} lets other machines scale this cluster: give a token (--token or MUSTER_TOKEN), or listen on 127.0.0.1`,
    );
    this.name = "ServiceRefused";
  }
}

export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);

/** @throws ServiceRefused */
export function assertGuarded(host: string, token: string | undefined): void {
  if (!isLoopback(host) && (token === undefined || token === "")) throw new ServiceRefused(host);
}

/** Compares in constant time. */
export function grants(header: string | undefined, token: string): boolean {
  const given = /^Bearer (.+)$/i.exec(header ?? "")?.[1] ?? "";
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}
