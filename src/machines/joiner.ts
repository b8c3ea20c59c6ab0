/** A new rank's process between its launch and the end of the operation that it joins. */
import { setup } from "xstate";
import { type Chart, tell } from "../kernel/mod.ts";

export interface JoinerContext {
  /** The operation's instance. */
  readonly report: string;
  readonly rank: number;
}

export type JoinerEvent =
  | { type: "firstFrame" }
  /** With a text: it could not be started. */
  | { type: "exited"; code: number | null; signal: string | null; text?: string };

type Args = { context: JoinerContext; event: JoinerEvent };

export const joiner: Chart<JoinerContext, JoinerEvent> = setup({
  types: {} as { context: JoinerContext; events: JoinerEvent; input: JoinerContext },
  actions: {
    sayLost: ({ context, event }: Args) => {
      const { code, signal, text } = event as JoinerEvent & { type: "exited" };
      const how = text === undefined
        ? `ended with ${signal ?? `code ${code ?? "unknown"}`}`
        : `could not be started: ${text}`;
      return tell(context.report, {
        type: "joinerLost",
        rank: context.rank,
        text: `the process of new rank ${context.rank} ${how}`,
      });
    },
  },
}).createMachine({
  id: "joiner",
  context: ({ input }: { input: JoinerContext }) => ({ ...input }),
  initial: "joining",
  states: {
    joining: { on: { firstFrame: {}, exited: { target: "lost", actions: "sayLost" } } },
    lost: { on: { exited: {}, firstFrame: {} } },
  },
});
