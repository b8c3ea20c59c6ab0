import { Buffer } from "node:buffer";
import process from "node:process";
import { type Command, InvalidArgumentError } from "commander";
import type { Store, StoreStranger, TcpStoreServer } from "../../drivers/tcpstore/mod.ts";
import { durationMs, portNumber } from "../arguments.ts";
import { EXIT } from "../exit-codes.ts";

interface Address {
  readonly host: string;
  readonly port: number;
}

interface Look {
  readonly prefix?: string;
  readonly timeout: number;
  readonly as: Shape;
}

type Shape = "auto" | "text" | "hex" | "raw" | "json";
const SHAPES: readonly Shape[] = ["auto", "text", "hex", "raw", "json"];
const LOOK_MS = 10_000;

/** `muster store`: runs a TCPStore server, or looks into a running cluster's store. */
export function storeCommand(program: Command): void {
  const { writeOut, writeErr } = program.configureOutput();
  const say = (text: string): void =>
    void (writeOut === undefined ? process.stdout.write(`${text}\n`) : writeOut(`${text}\n`));
  const complain = (text: string): void => {
    const line = `muster store: ${text}\n`;
    if (writeErr === undefined) process.stderr.write(line);
    else writeErr(line);
    process.exitCode = EXIT.failed;
  };
  const use = (server: Address, look: Look, what: (store: Store) => Promise<void>) =>
    withStore(server, look, what, complain);
  const store = program.command("store")
    .description("run a PyTorch TCPStore server, or look into a running one")
    .option("--host <address>", "address to bind (all, IPv6 and IPv4, unless one is given)")
    .option("--port <port>", "port to bind, 0 for a free one", portNumber, 29500)
    .option("--quiet", "do not report connections that were closed for what they did")
    .addHelpText("after", EXAMPLES)
    .action((flags: { host?: string; port: number; quiet?: boolean }) => serve(flags, say));

  looking(store, "get <server> <key>", "print a key's value; exit code 1 if there is none")
    .option("--wait", "wait for the key, as long as --timeout says")
    .action((server: Address, key: string, flags: Look & { wait?: boolean }) =>
      use(server, flags, async (inside) => {
        const value = flags.wait === true ? await inside.get(key) : await inside.peek(key);
        if (value !== undefined) return print(value, flags.as, key, say);
        complain(`there is no key ${JSON.stringify(key)} at ${server.host}:${server.port}`);
      })
    );

  looking(store, "set <server> <key> <value>", "store a value, and see that the server has it")
    .option("--hex", "the value is hex digits")
    .action((server: Address, key: string, value: string, flags: Look & { hex?: boolean }) =>
      use(server, flags, async (inside) => {
        await inside.set(key, flags.hex === true ? fromHexDigits(value) : value, { confirm: true });
      })
    );

  looking(
    store,
    "wait <server> <keys...>",
    "wait until all keys are there; exit code 1 if not in time",
  )
    .action((server: Address, keys: string[], flags: Look) =>
      use(server, flags, (inside) => inside.wait(keys))
    );

  looking(store, "keys <server>", "list the keys, sorted")
    .option("--values", "with their values")
    .action((server: Address, flags: Look & { values?: boolean }) =>
      use(server, flags, async (inside) => {
        for (const key of (await inside.listKeys()).sort()) {
          if (flags.values !== true) say(flags.as === "json" ? JSON.stringify(key) : key);
          else {
            const value = await inside.peek(key);
            if (value !== undefined) say(`${key}\t${shown(value, flags.as, key)}`);
          }
        }
      })
    );
  for (const command of store.commands) command.exitOverride();
}

const EXAMPLES = `
Examples:
  muster store --port 29500
  muster store keys 10.0.0.1:29500 --prefix elastic_ep/external --values
  muster store wait localhost:29500 ready/0 ready/1 --timeout 2m && echo both are ready

A server is HOST:PORT, [IPv6]:PORT, or PORT on this machine.
Values are shown as text where they are text, else as hex; --as raw writes their bytes as they are.
Exit code: 0 done, 1 not there or nobody answers, 2 the question was wrong.`;

/** A command that looks into a store. */
function looking(store: Command, usage: string, description: string): Command {
  const [name, server, ...rest] = usage.split(" ");
  const command = store.command(name!).description(description)
    .argument(server!, "HOST:PORT", address);
  for (const argument of rest) command.argument(argument);
  return command
    .option("--prefix <prefix>", "look under this prefix, as PrefixStore does")
    .option("--timeout <duration>", "how long to try", durationMs, LOOK_MS)
    .option("--as <shape>", `how values are shown: ${SHAPES.join(", ")}`, shape, "auto");
}

async function serve(
  flags: { readonly host?: string; readonly port: number; readonly quiet?: boolean },
  say: (text: string) => void,
): Promise<void> {
  const { TcpStoreServer } = await import("../../drivers/tcpstore/mod.ts");
  const onStranger = ({ code, message, remote }: StoreStranger): unknown =>
    flags.quiet === true
      ? undefined
      : process.stderr.write(`${remote} closed, ${code}: ${message}\n`);
  const { host, port } = flags;
  const server = await TcpStoreServer.listen({
    ...(host === undefined ? {} : { host }),
    port,
    onStranger,
  });
  say(
    `TCPStore listening on ${
      server.host.includes(":") ? `[${server.host}]` : server.host
    }:${server.port}`,
  );
  const signal = await new Promise<NodeJS.Signals>((resolve) => {
    for (const each of ["SIGINT", "SIGTERM"] as const) process.once(each, () => resolve(each));
  });
  say(summary(server, signal));
  await server.close();
}

function summary({ stats }: TcpStoreServer, signal: string): string {
  const closed = Object.entries(stats.closed).map(([code, count]) => `${count} ${code}`).join(", ");
  return `${signal}: ${stats.requests} requests of ${stats.accepted} connections, ${stats.keys} keys` +
    (closed === "" ? "" : `; closed: ${closed}`);
}

/** Connects, does something with the store, and turns what a user can meet into a line and an exit code. */
async function withStore(
  server: Address,
  look: Look,
  what: (store: Store) => Promise<void>,
  complain: (text: string) => void,
): Promise<void> {
  const { PrefixStore, TcpStoreClient, TcpStoreError } = await import(
    "../../drivers/tcpstore/mod.ts"
  );
  let client: Awaited<ReturnType<typeof TcpStoreClient.connect>> | undefined;
  try {
    client = await TcpStoreClient.connect({
      ...server,
      connectMs: Math.min(look.timeout, LOOK_MS),
      retry: false,
      timeoutMs: look.timeout,
    });
    await what(look.prefix === undefined ? client : new PrefixStore(look.prefix, client));
  } catch (error) {
    if (!(error instanceof TcpStoreError)) throw error;
    complain(`${error.message} [${error.code}]`);
  } finally {
    client?.close();
  }
}

function print(value: Uint8Array, as: Shape, key: string, say: (text: string) => void): void {
  if (as === "raw") process.stdout.write(value);
  else say(shown(value, as, key));
}

function shown(value: Uint8Array, as: Shape, key: string): string {
  const bytes = Buffer.from(value);
  if (as === "json") {
    return JSON.stringify({ key, hex: bytes.toString("hex"), text: textIn(bytes) });
  }
  if (as === "hex") return bytes.toString("hex");
  if (as === "text" || as === "raw") return bytes.toString();
  return textIn(bytes) ?? `0x${bytes.toString("hex")}`;
}

/** The text that the bytes are, or null if they are no text that a terminal shows. */
function textIn(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // deno-lint-ignore no-control-regex
    return /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

function address(text: string): Address {
  const match = /^(?:(?:\[([^\]]+)\]|([^:]+)):)?(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535) {
    throw new InvalidArgumentError("It must be HOST:PORT, [IPv6]:PORT, or PORT.");
  }
  return { host: match[1] ?? match[2] ?? "127.0.0.1", port };
}

function shape(text: string): Shape {
  if ((SHAPES as readonly string[]).includes(text)) return text as Shape;
  throw new InvalidArgumentError(`It must be one of ${SHAPES.join(", ")}.`);
}

function fromHexDigits(text: string): Uint8Array {
  if (!/^(?:[0-9a-f]{2})*$/i.test(text)) {
    throw new InvalidArgumentError("It is not an even number of hex digits.");
  }
  return Buffer.from(text, "hex");
}
