import { serve } from "@hono/node-server";
import { isLoopback, newToken } from "./access.ts";
import { consoleHandler, type ConsoleOptions } from "./handler.ts";

export interface ConsoleServerOptions extends Omit<ConsoleOptions, "access"> {
  /** Where to listen; 127.0.0.1 when not given. Anything else than this machine makes the token necessary for everything. */
  readonly host?: string;
  /** 0 (the default) takes a free port. */
  readonly port?: number;
  /** Fresh for each console when not given. */
  readonly token?: string;
}

export interface ConsoleServer {
  /** Without the token. */
  readonly url: string;
  readonly token: string;
  /** The address to open: the token stands behind the `#`, which browsers do not send. */
  readonly address: string;
  close(): Promise<void>;
}

/** Why no console could be started. */
export class ConsoleError extends Error {
  readonly code: "console.listen" | "console.source";
  constructor(code: ConsoleError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ConsoleError";
    this.code = code;
  }
}

/**
 * Starts the console. Throws `ConsoleError` (`console.listen`) when the address cannot be had, and what its source throws when there
 * is nothing to be read from it (`JournalError`).
 */
export async function startConsole(options: ConsoleServerOptions): Promise<ConsoleServer> {
  const { host = "127.0.0.1", port = 0, token = newToken(), ...rest } = options;
  const exposed = !isLoopback(host);
  await rest.source.head(); // a journal that cannot be read is said now, and read before somebody waits for it
  const fetch = consoleHandler({ ...rest, access: { token, exposed } });
  const server = await new Promise<ReturnType<typeof serve>>((resolve, reject) => {
    const starting = serve({ fetch, hostname: host, port }, () => resolve(starting));
    starting.once("error", (cause: Error & { code?: string }) => {
      const reason = cause.code === "EADDRINUSE"
        ? "something listens there already"
        : cause.message;
      reject(
        new ConsoleError("console.listen", `cannot listen on ${host}:${port}: ${reason}`, {
          cause,
        }),
      );
    });
  });
  const bound = server.address() as { port: number };
  const name = host.includes(":") ? `[${host}]` : host === "0.0.0.0" ? "127.0.0.1" : host;
  const url = `http://${name}:${bound.port}/`;
  return {
    url,
    token,
    address: `${url}#token=${token}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        (server as { closeAllConnections?: () => void }).closeAllConnections?.();
      }),
  };
}
