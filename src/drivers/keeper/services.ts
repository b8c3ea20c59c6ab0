import { Refused, type ServiceStatus } from "./protocol.ts";

/** A service that runs inside the keeper, so that a coordinator's crash does not take it along. */
export interface HostedService {
  /** Where it can be reached, and whatever else a client must know: JSON. */
  info: unknown;
  close(): Promise<void>;
}

/** Starts a service of one kind. `options` come from the wire and are to be checked. */
export type ServiceStarter = (options: unknown) => Promise<HostedService>;

/** The kinds that a keeper can host. A starter imports its server only when it is asked for. */
export const HOSTED_SERVICES: Record<string, ServiceStarter> = {
  /** A TCPStore server: options `{host?, port?}`, info `{host, port}`. Torch's clients never reconnect, so it must not go. */
  tcpstore: async (options) => await (await import("../tcpstore/hosted.ts")).hostStore(options),
};

/** The services of one keeper, by the id that they were started with. */
export class Services {
  readonly #kinds: Record<string, ServiceStarter>;
  readonly #running = new Map<string, { kind: string; service: Promise<HostedService> }>();

  constructor(kinds: Record<string, ServiceStarter> = HOSTED_SERVICES) {
    this.#kinds = kinds;
  }

  /** Starts one; the same id again answers with what runs. @throws Refused `service-failed` */
  async start(id: string, kind: string, options: unknown): Promise<ServiceStatus> {
    let entry = this.#running.get(id);
    if (entry === undefined) {
      const start = Object.hasOwn(this.#kinds, kind) ? this.#kinds[kind] : undefined;
      if (start === undefined) {
        const known = Object.keys(this.#kinds).join(", ") || "none";
        throw new Refused("service-failed", `unknown kind of service "${kind}" (known: ${known})`);
      }
      entry = { kind, service: start(options) };
      this.#running.set(id, entry);
    }
    try {
      return { id, kind: entry.kind, info: (await entry.service).info };
    } catch (error) {
      this.#running.delete(id);
      throw new Refused("service-failed", `${kind}: ${(error as Error).message}`);
    }
  }

  async stop(id: string): Promise<boolean> {
    const entry = this.#running.get(id);
    if (entry === undefined) return false;
    this.#running.delete(id);
    await (await entry.service.catch(() => null))?.close();
    return true;
  }

  async stopAll(): Promise<void> {
    await Promise.allSettled([...this.#running.keys()].map((id) => this.stop(id)));
  }

  async list(): Promise<ServiceStatus[]> {
    const found: ServiceStatus[] = [];
    for (const [id, { kind, service }] of this.#running) {
      const started = await service.catch(() => null);
      if (started !== null) found.push({ id, kind, info: started.info });
    }
    return found;
  }
}
