import { KeeperError } from "./errors.ts";
import type { KeeperCommand, KeeperCommands, KeeperReply } from "./protocol.ts";

/** The commands that wait for their replies. */
export class Calls {
  send: (message: unknown) => void = () => {};
  /** We asked for the end: its coming is no loss. */
  closing = false;
  stopped = false;
  readonly #open = new Map<number, (reply: KeeperReply | KeeperError) => void>();
  #last = 0;
  #failed: string | null = null;

  call<K extends KeeperCommand>(
    command: K,
    ask: KeeperCommands[K]["ask"],
    withinMs: number,
  ): Promise<KeeperCommands[K]["answer"]> {
    const n = ++this.#last;
    return new Promise((resolve, reject) => {
      if (this.#failed !== null) return reject(lost(command, this.#failed));
      const timer = setTimeout(
        () => settle(lost(command, `no answer within ${withinMs} ms`)),
        withinMs,
      );
      const settle = (reply: KeeperReply | KeeperError): void => {
        clearTimeout(timer);
        this.#open.delete(n);
        if (reply instanceof KeeperError) reject(reply);
        else if ("error" in reply) {
          const { code, message, fence } = reply.error;
          reject(new KeeperError(`keeper-${code}`, `${command}: ${message}`, fence));
        } else resolve(reply.ok as KeeperCommands[K]["answer"]);
      };
      this.#open.set(n, settle);
      this.send({ n, do: command, ...ask });
    });
  }

  settle(reply: KeeperReply): void {
    this.#open.get(reply.re)?.(reply);
  }

  fail(reason: string): void {
    this.#failed = reason;
    for (const settle of [...this.#open.values()]) settle(lost("command", reason));
  }
}

const lost = (command: string, reason: string): KeeperError =>
  new KeeperError("keeper-lost", `${command}: ${reason}; its outcome is unknown`);
