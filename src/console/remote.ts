import type { JournalRecord } from "../journal/mod.ts";
import type { ConsoleSource, Observation, RunHead, SourceLine } from "./source.ts";

const RETRY_MS = 1000;

/**
 * A run of another process that serves the console's API (`muster console`, a coordinator with its HTTP service), by its
 * address; a token may stand behind its `#token=`. Goes on by itself when the other side was away.
 */
export function remoteSource(address: string): ConsoleSource {
  const url = new URL(address);
  const token = /[#&]token=([^&]+)/.exec(url.hash)?.[1];
  url.hash = "";
  const base = url.href.replace(/\/?$/, "/");
  const headers: Record<string, string> = token === undefined
    ? {}
    : { authorization: `Bearer ${token}` };
  let head: RunHead | undefined;
  let lines: SourceLine[] = [];
  let observations: readonly Observation[] = [];

  const load = async (): Promise<void> => {
    const response = await fetch(`${base}api/journal`, { headers });
    if (!response.ok) {
      throw new Error(`${base} answers ${response.status}: ${await reason(response)}`);
    }
    const [first, ...rest] = (await response.text()).trimEnd().split("\n");
    head = (JSON.parse(first ?? "null") as RunHead | null) ?? undefined;
    lines = rest.map((text) => ({ seq: (JSON.parse(text) as JournalRecord).seq, text }));
  };

  const follow = async (signal: AbortSignal, more: () => void): Promise<void> => {
    while (!signal.aborted) {
      try {
        const after = String(lines.at(-1)?.seq ?? 0);
        const response = await fetch(`${base}api/events`, {
          headers: { ...headers, "last-event-id": after },
          signal,
        });
        let rest = "";
        const decoder = new TextDecoder();
        for await (const chunk of response.body ?? []) {
          const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
          rest = blocks.pop()!;
          for (const block of blocks) {
            const data = /^data: (.*)$/m.exec(block)?.[1];
            const seq = Number(/^id: (\d+)$/m.exec(block)?.[1]);
            if (data === undefined) continue;
            if (block.includes("event: observations")) observations = JSON.parse(data);
            else if (seq > (lines.at(-1)?.seq ?? 0)) lines.push({ seq, text: data });
          }
          more();
        }
      } catch {
        // The other side is away; it is looked for again.
      }
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      const run = head?.header.run;
      await load().catch(() => {});
      if (head?.header.run !== run) more();
    }
  };

  return {
    name: base,
    live: true,
    head: async () => {
      if (head === undefined) await load();
      return head;
    },
    last: () => lines.at(-1)?.seq ?? 0,
    async *lines(from) {
      const start = lines[0]?.seq ?? 1;
      yield* lines.slice(Math.max(0, from - start));
    },
    watch: (more) => {
      const stop = new AbortController();
      void follow(stop.signal, more);
      return () => stop.abort();
    },
    observations: () => observations,
  };
}

async function reason(response: Response): Promise<string> {
  try {
    return (await response.json() as { error?: string }).error ?? response.statusText;
  } catch {
    return response.statusText;
  }
}
