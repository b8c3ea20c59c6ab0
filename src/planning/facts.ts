/** What only the world knows: asked by a driver, handed to the preflight as data. */

/** What a host name stands for. */
export interface Resolution {
  readonly addresses: readonly string[];
  /** Why it stands for nothing, in the resolver's words. */
  readonly error?: string;
}

/** Could a port be bound on this host? */
export interface PortFact {
  readonly host: string;
  readonly port: number;
  /** `not-here`: the address is none of this host's. */
  readonly state: "free" | "in-use" | "not-here" | "denied";
}

/** A unix socket that lies in a directory that the plan will use. */
export interface SocketFact {
  readonly path: string;
  /** `live`: somebody answers. `stale`: nobody does. */
  readonly state: "live" | "stale";
}

export interface DirectoryFact {
  readonly path: string;
  /** `missing` is fine: it is made. */
  readonly state: "writable" | "missing" | "not-writable" | "not-a-directory";
  readonly sockets: readonly SocketFact[];
}

/** Everything that was asked of the world. Null members were not asked. */
export interface Facts {
  /** Addresses of this host; the plan's nodes with one of them are here. */
  readonly interfaces: readonly string[];
  readonly resolutions: Readonly<Record<string, Resolution>>;
  readonly ports: readonly PortFact[];
  readonly directories: readonly DirectoryFact[];
  /** How many devices this host has; null when nobody can tell. */
  readonly devices: number | null;
  /** The value of the platform's variable in this environment; null when it is not set. */
  readonly visible: string | null;
  /** Where the `vllm` command is; null when it is not on the path. */
  readonly vllm: string | null;
}

/** What a plan wants to know of the world. */
export interface Questions {
  readonly names: readonly string[];
  readonly ports: readonly { readonly host: string; readonly port: number }[];
  readonly directories: readonly string[];
  /** The variable whose value matters. */
  readonly variable: string;
}
