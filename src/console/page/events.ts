/** Server-sent events by `fetch`, because `EventSource` can send no token. Goes on by itself where it was. */

export interface Received {
  readonly event: string;
  readonly data: string;
}

export interface FollowOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The id after which to go on. */
  readonly after: () => number;
  readonly receive: (batch: readonly Received[]) => void;
  readonly state: (state: "live" | "reconnecting") => void;
  /** Asked before each reconnect; false ends it (the run is another one). */
  readonly again: () => Promise<boolean>;
}

const RETRY_MS = 1000;

/** Follows until the returned function is called. */
export function follow(options: FollowOptions): () => void {
  const stop = new AbortController();
  void run(options, stop.signal);
  return () => stop.abort();
}

async function run(options: FollowOptions, signal: AbortSignal): Promise<void> {
  for (let first = true; !signal.aborted; first = false) {
    try {
      if (!first && !(await options.again())) return;
      const response = await fetch(options.url, {
        headers: { ...options.headers, "last-event-id": String(options.after()) },
        signal,
      });
      if (!response.ok || response.body === null) throw new Error(`answer ${response.status}`);
      options.state("live");
      await read(response.body, options.receive);
    } catch {
      // Told by the state; the next round tries again.
    }
    if (signal.aborted) return;
    options.state("reconnecting");
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function read(
  body: ReadableStream<Uint8Array>,
  receive: FollowOptions["receive"],
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop()!;
    const batch = blocks.flatMap(parse);
    if (batch.length > 0) receive(batch);
  }
}

function parse(block: string): Received[] {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length > 0 ? [{ event, data: data.join("\n") }] : [];
}
