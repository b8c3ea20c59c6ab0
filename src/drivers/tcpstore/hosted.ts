import { TcpStoreServer } from "./server.ts";

/** How a store is asked for where it is hosted for somebody: JSON, checked here. */
export interface HostedStoreOptions {
  /** Address to bind. Default: every address. */
  readonly host?: string;
  /** Port to bind. Default: a free one. */
  readonly port?: number;
}

/** Where a hosted store listens. */
export interface HostedStoreInfo {
  readonly host: string;
  readonly port: number;
}

/** A store that runs inside another program, as a keeper of processes hosts it: it outlives the coordinator. */
export interface HostedStore {
  readonly info: HostedStoreInfo;
  close(): Promise<void>;
}

/**
 * Starts a store for somebody else.
 * @throws TypeError when the options are not `HostedStoreOptions`, and the operating system's error when it cannot bind.
 */
export async function hostStore(options: unknown): Promise<HostedStore> {
  const server = await TcpStoreServer.listen(checked(options));
  return { info: { host: server.host, port: server.port }, close: () => server.close() };
}

function checked(options: unknown): HostedStoreOptions {
  if (options === null || options === undefined) return {};
  if (typeof options !== "object" || Array.isArray(options)) {
    throw new TypeError("the options of a store are an object with host and port");
  }
  const { host, port, ...more } = options as Record<string, unknown>;
  const unknown = Object.keys(more);
  if (unknown.length > 0) {
    throw new TypeError(`a store has no option ${unknown.join(", ")} (there are host and port)`);
  }
  if (host !== undefined && typeof host !== "string") throw new TypeError("host must be a string");
  if (
    port !== undefined &&
    !(Number.isInteger(port) && (port as number) >= 0 && (port as number) < 65_536)
  ) {
    throw new TypeError(`port must be a whole number from 0 to 65535, not ${JSON.stringify(port)}`);
  }
  return {
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port: port as number }),
  };
}
