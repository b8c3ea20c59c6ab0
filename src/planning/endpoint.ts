/** Where sockets are bound and dialled: tcp with bracketed IPv6, or unix sockets within their limit. */

/** The longest path of a unix socket on Linux; longer ones are cut silently or refused, by runtime. */
export const MAX_IPC_PATH_BYTES = 107;

export type Endpoint =
  | { readonly transport: "ipc"; readonly path: string; readonly address: string }
  | {
    readonly transport: "tcp";
    readonly host: string;
    /** 0: the binder takes a free port and reports it. */
    readonly port: number;
    readonly address: string;
  };

/** `fd00::1` without brackets, whether or not they were typed. */
export const bareHost = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

export const isIPv6 = (host: string): boolean => bareHost(host).includes(":");

/** `fd00::1` is `[fd00::1]` in an address, everything else is itself. */
export const bracketed = (host: string): string => isIPv6(host) ? `[${bareHost(host)}]` : host;

export function tcp(host: string, port: number): Endpoint {
  const bare = bareHost(host);
  return { transport: "tcp", host: bare, port, address: `tcp://${bracketed(bare)}:${port}` };
}

export const ipc = (path: string): Endpoint => ({
  transport: "ipc",
  path,
  address: `ipc://${path}`,
});

/** The same endpoint once its port is known; an ipc endpoint is already complete. */
export const withPort = (endpoint: Endpoint, port: number): Endpoint =>
  endpoint.transport === "tcp" ? tcp(endpoint.host, port) : endpoint;

/** The length of a path as the kernel counts it. */
export const pathBytes = (path: string): number => new TextEncoder().encode(path).length;

/** Only this host reaches it: 127.0.0.0/8, `::1` in any spelling, IPv4-mapped loopback, `localhost` and names below it. */
export function isLoopback(host: string): boolean {
  const bare = bareHost(host).toLowerCase().replace(/\.$/, "");
  if (bare === "localhost" || bare.endsWith(".localhost")) return true;
  if (/^127(\.\d{1,3}){1,3}$/.test(bare)) return true;
  const groups = ipv6Groups(bare);
  if (!groups) return false;
  const high = groups.slice(0, 5).every((g) => g === 0);
  const one = groups[5] === 0 && groups[6] === 0 && groups[7] === 1;
  const mapped = groups[5] === 0xffff && groups[6]! >> 8 === 127;
  return high && (one || mapped);
}

/** An address to listen on, but not one to dial: `0.0.0.0`, `::`, `*`. */
export function isWildcard(host: string): boolean {
  const bare = bareHost(host);
  if (bare === "*" || /^0+(\.0+){0,3}$/.test(bare)) return true;
  return ipv6Groups(bare)?.every((g) => g === 0) ?? false;
}

export type HostKind = "ipv4" | "ipv6" | "name";

export const hostKind = (host: string): HostKind =>
  isIPv6(host) ? "ipv6" : /^\d{1,3}(\.\d{1,3}){3}$/.test(host) ? "ipv4" : "name";

/** What is wrong with a host as something to dial, or undefined. */
export function hostFault(host: string): string | undefined {
  const bare = bareHost(host);
  if (/^[a-z]+:\/\//i.test(host)) return "is a URL, and a host alone is wanted.";
  if (isIPv6(bare)) {
    if (ipv6Groups(bare)) return undefined;
    return /^[^:]+:\d+$/.test(bare)
      ? "has a port, and a host alone is wanted."
      : "is not an IPv6 address.";
  }
  if (/^[\d.]+$/.test(bare)) {
    const parts = bare.split(".");
    return parts.length === 4 && parts.every((p) => p !== "" && Number(p) <= 255)
      ? undefined
      : "is not an IPv4 address.";
  }
  const label = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/i;
  return bare.length <= 253 && bare.replace(/\.$/, "").split(".").every((l) => label.test(l))
    ? undefined
    : "is not a host name.";
}

/** The eight groups of an IPv6 address (a zone is left out), or undefined when it is none. */
export function ipv6Groups(host: string): number[] | undefined {
  let text = bareHost(host).split("%")[0]!;
  const v4 = /^(.*:)(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (v4) {
    const [a, b, c, d] = v4.slice(2).map(Number) as [number, number, number, number];
    if ([a, b, c, d].some((n) => n > 255)) return undefined;
    text = `${v4[1]}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  }
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const parse = (half: string): number[] | undefined => {
    if (half === "") return [];
    const parts = half.split(":");
    return parts.every((p) => /^[0-9a-f]{1,4}$/i.test(p))
      ? parts.map((p) => parseInt(p, 16))
      : undefined;
  };
  const head = parse(halves[0]!);
  const tail = parse(halves[1] ?? "");
  if (!head || !tail) return undefined;
  if (halves.length === 1) return head.length === 8 ? head : undefined;
  const gap = 8 - head.length - tail.length;
  return gap >= 1 ? [...head, ...Array.from({ length: gap }, () => 0), ...tail] : undefined;
}
