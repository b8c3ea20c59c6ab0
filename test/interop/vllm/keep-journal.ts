/**
 * Makes a golden run of a journal: `keep-journal.ts JOURNAL OUT.jsonl`. Keeps the inputs as they were, without what belongs to the machine that they
 * were made on (paths, and digests of states, which change with every release of ours).
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const [journal, out] = process.argv.slice(2);
const began: number[] = [];
const lines = readdirSync(journal!).filter((f) => f.endsWith(".jsonl")).sort()
  .flatMap((file) => readFileSync(join(journal!, file), "utf8").trimEnd().split("\n"))
  .map((line) => JSON.parse(line))
  .filter((record) => record.seq !== undefined && record.event !== undefined)
  .map(({ seq, at, to, event }) => {
    began.push(at);
    const text = JSON.stringify({ seq, at: at - began[0]!, to, event });
    return text
      .replaceAll(/"[^"]*\/(dense|moe)"/g, '"/models/$1"')
      .replaceAll(/"[^"]*\/bin\/vllm"/g, '"/venv/bin/vllm"')
      .replaceAll(/"PYTHONPATH":"[^"]*"/g, '"PYTHONPATH":"/plugin"')
      .replaceAll(/ipc:\/\/[^"]*\//g, "ipc:///run/muster/")
      .replaceAll(/"directory":"[^"]*"/g, '"directory":"/run/muster/keeper"')
      .replaceAll(/\/(?:tmp|root|home|work)\/[^" ,]*\//g, "/somewhere/");
  });
writeFileSync(out!, lines.join("\n") + "\n");
