/**
 * A driver carries effects out and turns what comes of them into inputs. It decides nothing.
 *
 * The host calls it in order: messages and calls of one channel leave in the order in which steps asked for them, and a
 * durable one only after its input is safe. A driver never throws into the host: what goes wrong is an outcome or an input.
 */
import type { EffectId, InstanceId, KernelEvent, Typed } from "../kernel/mod.ts";

/** What a driver may say to the host. */
export interface DriverPort {
  /** Counts the owners of the run: whoever asks the world with a lower one has been replaced. */
  readonly fence: number;
  /**
   * Something happened: becomes an input, is journalled and delivered.
   *
   * @param safe called when the input is durable: only then may its source forget it.
   */
  input(to: InstanceId, event: KernelEvent, safe?: () => void): void;
  /** The one outcome of a call. `to` is the instance that asked. */
  outcome(call: EffectId, to: InstanceId, event: KernelEvent, safe?: () => void): void;
  /** Something superseded by the next of its kind (load statistics, freshness): goes to reducers beside the system, not to the journal. */
  observe(observation: Typed): void;
}

/** A message or a call that is to be carried out. `id` is the same for the same run and good for ids on the wire. */
export interface Order<E extends Typed = Typed> {
  readonly id: EffectId;
  readonly from: InstanceId;
  readonly kind: "message" | "call";
  readonly effect: E;
}

/** A resource that an instance holds: the driver brings the world to the set of these. */
export interface Holding<R extends Typed = Typed> {
  readonly holder: InstanceId;
  readonly key: string;
  readonly resource: R;
}

export interface Driver<E extends Typed = Typed, R extends Typed = Typed> {
  /** For logs and errors. */
  readonly name: string;
  /** The effect types that this driver carries out. */
  readonly effects: readonly E["type"][];
  /** The resource types that this driver provides. */
  readonly resources: readonly R["type"][];
  /** Called once, before anything else. */
  start(port: DriverPort): void | Promise<void>;
  /** Carries a message or a call out. A call must lead to exactly one `port.outcome`, also after `abandon`. */
  perform(order: Order<E>): void;
  /**
   * A call of an earlier life whose outcome never arrived: find out what became of it, and lead to its one outcome. Needed for effect types
   * whose recovery is `ask`; the others are performed again.
   */
  ask?(order: Order<E>): void;
  /** Nobody waits for the call's outcome any more. */
  abandon?(call: EffectId): void;
  /** Provides a resource, or changes the one of the same holder and key. */
  hold?(holding: Holding<R>): void;
  /** Gives a resource up. */
  release?(holding: Holding<R>): void;
  /** The channel on which an effect leaves: effects of one channel keep their order. The driver's name by default. */
  channel?(order: Order<E>): string;
  /** Gives everything up; nothing of it remains afterwards. */
  close(): Promise<void>;
}
