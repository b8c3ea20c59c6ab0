/** Addresses of sockets: checked before libzmq sees them, so that what is wrong is said in words. */
import { isIPv6 } from "node:net";
import { bracketed, MAX_IPC_PATH_BYTES } from "../../planning/endpoint.ts";

/** An address that no socket can have. */
export class AddressError extends Error {
  override readonly name = "AddressError";
  readonly code: "address-malformed" | "ipc-path-too-long";
  constructor(code: AddressError["code"], text: string) {
    super(text);
    this.code = code;
  }
}

/** An address in its parts. Port 0 means that the system chooses. */
export type Address =
  | {
    readonly transport: "tcp";
    readonly host: string;
    readonly port: number;
    readonly ipv6: boolean;
  }
  | { readonly transport: "ipc"; readonly path: string }
  | { readonly transport: "inproc"; readonly name: string };

/** Reads `tcp://host:port`, `tcp://[::1]:port`, `ipc://path` or `inproc://name`; throws {@link AddressError}. */
export function parseAddress(text: string): Address {
  const [, transport, rest = ""] = /^(tcp|ipc|inproc):\/\/(.+)$/s.exec(text) ?? [];
  if (transport === "ipc") return { transport, path: checkedPath(rest) };
  if (transport === "inproc") return { transport, name: rest };
  const [, v6, name, port = ""] = /^(?:\[([^\]]*)\]|([^:[\]]+)):(\d{1,5}|\*)$/.exec(rest) ?? [];
  const host = v6 ?? name;
  const number = port === "*" ? 0 : Number(port);
  if (transport !== "tcp" || host === undefined || number > 65535) throw malformed(text);
  if (v6 !== undefined && !isIPv6(v6.replace(/%.*$/, ""))) throw malformed(text);
  return { transport, host, port: number, ipv6: v6 !== undefined };
}

/** The address in the form that libzmq binds; `*` for a port that the system chooses. */
export function bindable(address: Address): string {
  switch (address.transport) {
    case "tcp":
      return `tcp://${bracketed(address.host)}:${address.port === 0 ? "*" : address.port}`;
    case "ipc":
      return `ipc://${address.path}`;
    case "inproc":
      return `inproc://${address.name}`;
  }
}

function checkedPath(path: string): string {
  const bytes = new TextEncoder().encode(path).length;
  if (bytes > MAX_IPC_PATH_BYTES) {
    throw new AddressError(
      "ipc-path-too-long",
      `the ipc path ${path} has ${bytes} bytes, and a unix socket's path may have ${MAX_IPC_PATH_BYTES}: choose a ` +
        "shorter directory, for example with VLLM_RPC_BASE_PATH or TMPDIR",
    );
  }
  return path;
}

const malformed = (text: string): AddressError =>
  new AddressError(
    "address-malformed",
    `${
      JSON.stringify(text)
    } is not an address: expected tcp://host:port, tcp://[ipv6]:port or ipc:///path`,
  );
