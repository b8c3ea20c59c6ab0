import type { Deployment, NodeSpec } from "./deployment.ts";
import { overlaps } from "./devices.ts";
import { hostKind, isLoopback } from "./endpoint.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";
import { sameHost } from "./placement/snapshot.ts";
import type { PortUse, ProcessReport } from "./preflight.ts";

/** Is a node of the plan this host? A plan without nodes is about this host. */
export function isHere(node: NodeSpec, facts: Facts | null, deployment: Deployment): boolean {
  if (deployment.nodes.length === 0) return true;
  if (node.address === undefined) return deployment.nodes.length === 1;
  if (facts === null) return false;
  return addressesOf(node.address, facts).some((a) => facts.interfaces.some((i) => sameHost(a, i)));
}

const addressesOf = (host: string, facts: Facts | null): readonly string[] =>
  hostKind(host) === "name" ? facts?.resolutions[host]?.addresses ?? [] : [host];

/** Everything that is wrong, or may be, between processes and with the world. */
export function worldFindings(
  deployment: Deployment,
  processes: readonly ProcessReport[],
  facts: Facts | null,
): Finding[] {
  const host = hostOf(deployment, facts);
  return [
    ...portOverlaps(processes, host),
    ...deviceOverlaps(processes, host),
    ...families(deployment, facts),
    ...(facts === null ? [] : [
      ...names(deployment, facts),
      ...portsInUse(deployment, processes, facts),
      ...directories(facts),
      ...programs(deployment, processes, facts),
    ]),
  ];
}

/** What names the host of a node: its (first) address, so that two names of one host are seen as one. */
const hostOf = (deployment: Deployment, facts: Facts | null) => (name: string): string => {
  const address = deployment.nodes.find((n) => n.name === name)?.address;
  return address === undefined ? name : addressesOf(address, facts)[0] ?? address;
};

/** One port, wanted twice on one host: `*` and any address of it are the same port. */
function portOverlaps(
  processes: readonly ProcessReport[],
  host: (node: string) => string,
): Finding[] {
  const uses = new Map<
    string,
    { nodes: Set<string>; port: number; what: Set<string>; n: number }
  >();
  for (const { node, ports } of processes) {
    for (const { port, what } of ports) {
      const key = `${host(node)} ${port}`;
      const use = uses.get(key) ?? { nodes: new Set(), port, what: new Set(), n: 0 };
      use.nodes.add(node);
      use.what.add(what);
      use.n++;
      uses.set(key, use);
    }
  }
  return [...uses.values()].filter((u) => u.n > 1).map(({ nodes, port, what }) => ({
    level: "error",
    code: "port-twice",
    node: [...nodes].join(", "),
    message: `port ${port} is wanted twice (${[...what].join(" and ")}).`,
    fix: what.has("handshake")
      ? "Give another --data-parallel-rpc-port or --port."
      : "Give the servers different ports.",
  }));
}

function deviceOverlaps(
  processes: readonly ProcessReport[],
  host: (node: string) => string,
): Finding[] {
  const claims = processes.flatMap((p) =>
    (p.devices ?? []).map((ids, i) => ({
      who: `rank ${p.topology.firstRank + i}`,
      host: host(p.node),
      ids,
    }))
  );
  const seen = overlaps(claims);
  const first = seen[0];
  if (!first) return [];
  const more = seen.length > 1 ? `, and ${seen.length - 1} more` : "";
  return [{
    level: "error",
    code: "devices-twice",
    node: null,
    message: `device ${first.id} of ${first.host} is given to ${first.who.join(" and ")}${more}.`,
    fix: "Describe one host as one node, or give each rank devices of its own.",
  }];
}

function families(deployment: Deployment, facts: Facts | null): Finding[] {
  const head = deployment.nodes[0];
  if (head?.address === undefined) return [];
  const kinds = (host: string) => new Set(addressesOf(host, facts).map(hostKind));
  const spoken = kinds(head.address);
  if (spoken.size === 0) return [];
  return deployment.nodes.slice(1).flatMap((node): Finding[] => {
    const own = node.address === undefined ? new Set() : kinds(node.address);
    if (own.size === 0 || [...own].some((k) => spoken.has(k as "ipv4" | "ipv6"))) return [];
    return [{
      level: "warning",
      code: "address-families",
      node: node.name,
      message: `its address is ${familyText(own)}, and the head's is ${familyText(spoken)}.`,
      fix: "Use addresses of one family, or see to it that this node reaches the head's.",
    }];
  });
}

const familyText = (kinds: ReadonlySet<unknown>): string =>
  [...kinds].map((k) => k === "ipv6" ? "IPv6" : "IPv4").sort().join(" and ");

function names(deployment: Deployment, facts: Facts): Finding[] {
  const several = deployment.nodes.length > 1;
  return Object.entries(facts.resolutions).flatMap(([name, { addresses, error }]): Finding[] => {
    const node = deployment.nodes.find((n) => n.address === name)?.name ?? null;
    if (addresses.length === 0) {
      return [{
        level: "error",
        code: "name-unknown",
        node,
        message: `the name ${name} stands for nothing here (${error ?? "no record"}).`,
        fix: "Correct the name, or give an address.",
      }];
    }
    const found: Finding[] = [];
    if (addresses.length > 1) {
      found.push({
        level: "warning",
        code: "name-ambiguous",
        node,
        message: `the name ${name} stands for ${addresses.length} addresses: ${
          addresses.join(", ")
        }.`,
        fix: "Give one of the addresses: each process might take another one.",
      });
    }
    if (several && !isLoopback(name) && addresses.some(isLoopback)) {
      found.push({
        level: "error",
        code: "loopback-with-remote",
        node,
        message: `the name ${name} stands for ${
          addresses.find(isLoopback)
        } on this host (a line in /etc/hosts is the usual cause).`,
        fix: "Give an address that the other nodes can reach.",
      });
    }
    return found;
  });
}

const here = (deployment: Deployment, name: string, facts: Facts): boolean =>
  isHere(deployment.nodes.find((n) => n.name === name) ?? { name }, facts, deployment);

/** Only this host's ports can be tried. */
function portsInUse(
  deployment: Deployment,
  processes: readonly ProcessReport[],
  facts: Facts,
): Finding[] {
  return processes.filter((p) => here(deployment, p.node, facts)).flatMap(({ node, ports }) =>
    ports.flatMap((use): Finding[] => {
      const fact = facts.ports.find((p) => p.host === use.host && p.port === use.port);
      return fact ? portFinding(node, use, fact.state) : [];
    })
  );
}

function portFinding(node: string, use: PortUse, state: string): Finding[] {
  if (state === "in-use") {
    return [{
      level: "error",
      code: "port-in-use",
      node,
      message: `port ${use.port} (${use.what}) is in use on this host.`,
      fix: use.what === "handshake"
        ? "Stop what listens there (an earlier run?), or give another --data-parallel-rpc-port."
        : "Stop what listens there, or give another --port.",
    }];
  }
  if (state === "denied") {
    return [{
      level: "error",
      code: "port-denied",
      node,
      message: `port ${use.port} (${use.what}) may not be bound by this user.`,
      fix: "Give a port above 1023.",
    }];
  }
  return [];
}

function directories(facts: Facts): Finding[] {
  return facts.directories.flatMap(({ path, state, sockets }): Finding[] => {
    const found: Finding[] = [];
    if (state === "not-writable" || state === "not-a-directory") {
      found.push({
        level: "error",
        code: "ipc-directory-unusable",
        node: null,
        message: `sockets cannot be made in ${path}: it is ${
          state === "not-writable" ? "not writable" : "not a directory"
        }.`,
        fix: "Give another --rpc-base-path.",
      });
    }
    const live = sockets.filter((s) => s.state === "live");
    const stale = sockets.filter((s) => s.state === "stale");
    if (live.length) {
      found.push({
        level: "error",
        code: "earlier-run-alive",
        node: null,
        message: `somebody answers on ${live.length} of the sockets in ${path} (${live[0]!.path}).`,
        fix: "Stop the earlier run, or give another --rpc-base-path.",
      });
    }
    if (stale.length) {
      found.push({
        level: "warning",
        code: "earlier-run-leftover",
        node: null,
        message: `${path} has ${stale.length} ${
          stale.length === 1 ? "socket" : "sockets"
        } of an earlier run (${stale[0]!.path}).`,
        fix: "Remove them, or give a fresh --rpc-base-path.",
      });
    }
    return found;
  });
}

function programs(
  deployment: Deployment,
  processes: readonly ProcessReport[],
  facts: Facts,
): Finding[] {
  if (facts.vllm !== null) return [];
  const wanted = processes.find((p) =>
    p.command.argv[0] === "vllm" && here(deployment, p.node, facts)
  );
  return wanted
    ? [{
      level: "warning",
      code: "vllm-missing",
      node: wanted.node,
      message: "the command vllm is not on the path of this host.",
      fix: "Install vLLM here, or activate its environment before you start the node.",
    }]
    : [];
}
