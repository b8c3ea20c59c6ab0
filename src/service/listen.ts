/** Serves the API on a socket, on Node and on Deno. */
import { serve } from "@hono/node-server";
import type { AddressInfo } from "node:net";
import { assertGuarded } from "./access.ts";
import { createService, type ServiceOptions } from "./app.ts";

export interface ListenOptions extends ServiceOptions {
  /** Loopback by default; anything else needs a token. */
  readonly host?: string;
  /** 0: one that the system chooses. */
  readonly port?: number;
}

export interface Listening {
  readonly url: string;
  close(): Promise<void>;
}

/** The address cannot be had. */
export class ListenRefused extends Error {
  readonly code = "service-listen";
}

/**
 * Listens.
 *
 * @throws ServiceRefused without a token on anything but loopback; ListenRefused when it cannot bind
 */
export async function listen(options: ListenOptions): Promise<Listening> {
  const { host = "127.0.0.1", port = 0, token } = options;
  assertGuarded(host, token);
  const service = createService(options);
  const server = await new Promise<ReturnType<typeof serve>>((resolve, reject) => {
    const opened = serve(
      { fetch: service.app.fetch, hostname: host, port },
      () => resolve(opened),
    );
    opened.once("error", (cause: Error & { code?: string }) => {
      const reason = cause.code === "EADDRINUSE"
        ? "something listens there already"
        : cause.message;
      reject(
        new ListenRefused(`the HTTP API cannot listen on ${host}:${port}: ${reason}`, { cause }),
      );
    });
  });
  const { port: real } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${real}`,
    close: () => {
      service.close();
      return new Promise((done) => {
        server.close(() => done());
        // Streams of events never end by themselves.
        (server as { closeAllConnections?: () => void }).closeAllConnections?.();
      });
    },
  };
}
