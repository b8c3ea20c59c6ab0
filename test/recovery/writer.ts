/**
 * A process that writes records to a journal as fast as it can and says which are safe: `writer.ts DIRECTORY [force]`. It is killed by
 * tests.
 */
import process from "node:process";
import { FORMAT, JournalError, JournalReader } from "../../src/journal/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";
import { say } from "./say.ts";

const [directory, force] = process.argv.slice(2);
/** As long as their test says how long they are. */
const padding = (seq: number): string => "x".repeat((seq * 37) % 300);

try {
  const journal = await new FileStore(directory!, { force: force === "force" }).own();
  const reader = new JournalReader(journal.segments());
  for (const _ of reader.records());
  let { seq } = reader;
  await journal.begin({
    journal: "muster",
    format: FORMAT,
    run: "writer",
    fence: journal.fence,
    first: seq + 1,
    at: Date.now(),
    machines: {},
  });
  say(`owns ${journal.fence} from ${seq + 1}`);
  const digest = "0".repeat(32);
  for (let group = 1;; group = group % 7 + 1) {
    for (let i = 0; i < group; i++) {
      seq++;
      const event = JSON.stringify({ type: "written", seq, padding: padding(seq) });
      journal.append({ seq, fence: journal.fence, at: seq, to: "x", digest }, event);
    }
    journal.write();
    await journal.commit();
    say(`safe ${seq}`);
  }
} catch (error) {
  say(`failed ${error instanceof JournalError ? error.code : String(error)}`);
}
