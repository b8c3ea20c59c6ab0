/**
 * Every failure that a user can meet: one table of stable codes with cause and remedy. Errors, status, log lines, the page
 * and the documentation are made from it.
 */
import type { FailureCode } from "../machines/mod.ts";

/** What a code means in general. The record of a case adds who, when, in which phase and what came instead. */
export interface FailureKind {
  /** One sentence: what happened. */
  readonly cause: string;
  /** One sentence: what to do. */
  readonly remedy: string;
}

export const FAILURES: Readonly<Record<FailureCode, FailureKind>> = {
  "bind-failed": {
    cause: "A socket could not be bound to its address.",
    remedy:
      "Free the address (another coordinator may be running), or choose another with --data-parallel-rpc-port or --data-parallel-address.",
  },
  "spawn-failed": {
    cause: "An engine's process could not be started.",
    remedy: "Check that the program exists and may be executed by this user.",
  },
  "keeper-lost": {
    cause: "The keeper, the process that owns local engines, is gone, and every engine with it.",
    remedy:
      "Find out who killed it (the kernel's out-of-memory killer writes to dmesg), then start again.",
  },
  "engine-exited": {
    cause: "An engine's process ended.",
    remedy: "Read its last lines below; start again when their cause is mended.",
  },
  "engine-silent": {
    cause: "A process wrote nothing for longer than the no-progress limit.",
    remedy: "Look at what it hangs in (py-spy dump --pid), or raise --progress-limit.",
  },
  "engine-late": {
    cause: "A rank did not get to its next phase before the deadline.",
    remedy:
      "Start the missing engines, check that they reach the handshake address, or raise the deadline.",
  },
  "engine-unresponsive": {
    cause:
      "A rank that serves gave no sign of life for longer than the heartbeat's limit, or did not answer a coordinator that came back.",
    remedy:
      "Look whether its process and its host live and how busy they are; raise --heartbeat-limit if they are only busy.",
  },
  "engine-restarted": {
    cause: "A rank said HELLO again after it had been ready; its group of ranks is broken.",
    remedy: "Restart all ranks together.",
  },
  "engine-refused": {
    cause: "A rank said something that the protocol does not allow there.",
    remedy: "Start it with the flags that the message names.",
  },
  "configuration-mismatch": {
    cause: "Ranks were started with different configurations.",
    remedy:
      "Start all ranks with the same command line for everything that affects collective communication.",
  },
  "start-up-late": {
    cause: "Not every rank was ready before the deadline of the whole start-up.",
    remedy: "See who is missing below; raise --total-limit if they only need longer.",
  },
  "stranger": {
    cause:
      "Somebody who is no engine of this cluster spoke on the handshake socket (strict: upstream).",
    remedy:
      "Find out who connects to this address, or run without strict: upstream, which drops and counts strangers.",
  },
};
