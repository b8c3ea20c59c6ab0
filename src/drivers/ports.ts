/** Finds free ports for what others will bind: the ranks' groups, whose first process binds what every other one dials. */
import { createServer, type Server } from "node:net";
import type { DrawPorts } from "../machines/mod.ts";
import type { Driver, DriverPort, Order } from "./driver.ts";

export class PortsDriver implements Driver<DrawPorts, never> {
  readonly name = "ports";
  readonly effects = ["ports.draw"] as const;
  readonly resources = [] as const;
  #port: DriverPort | undefined;

  start(port: DriverPort): void {
    this.#port = port;
  }

  perform({ id, from, effect }: Order<DrawPorts>): void {
    void freePorts(effect.count, effect.host).then((ports) =>
      this.#port!.outcome(id, from, { type: "portsDrawn", ports })
    );
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/**
 * Different ports that are free now: all are held until the last one is found. Somebody else may take one before it is used; vLLM then tries its
 * next one. When `host` is no address of this machine, ports that are free on all of ours are as good a guess as any.
 */
export async function freePorts(count: number, host: string): Promise<number[]> {
  const held: Server[] = [];
  try {
    const ports: number[] = [];
    while (ports.length < count) {
      const server = await listen(host).catch(() => listen(undefined));
      held.push(server);
      ports.push((server.address() as { port: number }).port);
    }
    return ports;
  } finally {
    await Promise.all(held.map((server) => new Promise((done) => server.close(done))));
  }
}

function listen(host: string | undefined): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port: 0, ...(host === undefined ? {} : { host }) }, () => resolve(server));
  });
}
