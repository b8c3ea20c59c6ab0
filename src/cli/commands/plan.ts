import process from "node:process";
import type { Command } from "commander";
import { probe } from "../../drivers/preflight-probe.ts";
import {
  parseDeployment,
  type PlatformName,
  PLATFORMS,
  preflight,
  type Program,
  questionsOf,
  refusalText,
} from "../../planning/mod.ts";
import { addClusterFlags, clusterOf } from "../cluster-flags.ts";
import { EXIT } from "../exit-codes.ts";
import { planText } from "../plan-text.ts";
import { paintFor } from "../terminal.ts";

interface Flags extends Record<string, unknown> {
  readonly node?: readonly string[];
  readonly platform?: string;
  readonly frontEnd: string;
  readonly ray?: string;
  readonly probe: boolean;
  readonly json?: boolean;
}

/** `muster plan`: what would run where, why, what is in the way, and the command of every node. Nothing is started. */
export function planCommand(program: Command): void {
  const command = program.command("plan")
    .description("check a deployment and print each node's command; nothing is started")
    .option(
      "-n, --node <node>",
      "a node, the head first: name[=address][,devices=8][,ranks=4][,port=8000] (repeatable)",
      (value: string, all: string[]) => [...all, value],
      [],
    )
    .option(
      "--platform <name>",
      "the accelerators: cuda, rocm, xpu, hpu, tpu, neuron, ascend, musa, cpu",
    )
    .option(
      "--front-end <program>",
      "who plays the front-end in the commands: vllm itself, or muster",
      "vllm",
    )
    .option("--ray <url>", "take the nodes and what is free from a Ray cluster's dashboard")
    .option("--no-probe", "ask nothing of the world: no names, no ports, no files")
    .option("--json", "the whole plan as JSON");
  addClusterFlags(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (flags: Flags) => {
    const refuse = (text: string) =>
      program.error(text, { exitCode: EXIT.usage, code: "muster.plan" });
    const described = read(flags);
    if (typeof described === "string") return refuse(`muster plan: ${described}`);
    const input = flags.ray === undefined ? described : await withRayNodes(described, flags.ray);
    if (typeof input === "string") return refuse(`muster plan: --ray ${flags.ray}: ${input}`);
    const deployment = parseDeployment(input);
    if (!deployment.ok) {
      return refuse(
        `muster plan:\n${deployment.refusals.map((r) => `  ${refusalText(r)}`).join("\n")}`,
      );
    }
    if (!["muster", "vllm"].includes(flags.frontEnd)) {
      return refuse("muster plan: --front-end is muster or vllm");
    }
    const facts = flags.probe ? await probe(questionsOf(deployment.plan)) : null;
    const plan = preflight(deployment.plan, { facts, program: flags.frontEnd as Program });
    const say = program.configureOutput().writeOut ??
      ((text: string) => process.stdout.write(text));
    say(
      flags.json ? `${JSON.stringify(plan, null, 2)}\n` : planText(
        plan,
        paintFor(process.stdout.isTTY === true),
        Math.min(process.stdout.columns ?? 100, 110),
      ),
    );
    if (!plan.ok) process.exitCode = EXIT.failed;
  });
}

const EXAMPLES = `
Examples:
  muster plan --data-parallel-size 4
  muster plan --model m --data-parallel-size 8 --tensor-parallel-size 2 --moe \\
    --node head=10.0.0.1,devices=8 --node b=10.0.0.2,devices=8
  muster plan --ray http://10.0.0.1:8265 --data-parallel-address 10.0.0.1 --data-parallel-size 4
  muster plan --config deployment.json --json     (settings, "platform" and "nodes" in the file)

Exit code: 0 it can start, 1 it cannot, 2 the question was wrong.`;

/** The deployment as it was described, from file and flags (flags win); a text says what is wrong. */
function read(flags: Flags): Record<string, unknown> | string {
  const nodes = (flags.node ?? []).map(parseNode);
  const wrong = nodes.find((n) => typeof n === "string");
  if (wrong !== undefined) return wrong;
  try {
    return {
      ...clusterOf(flags),
      ...(flags.platform === undefined ? {} : { platform: flags.platform }),
      ...(nodes.length ? { nodes } : {}),
    };
  } catch (error) {
    return (error as Error).message;
  }
}

/** The deployment on the nodes of a Ray cluster that are alive, with the devices that are free now; a text says what is wrong. */
async function withRayNodes(
  described: Record<string, unknown>,
  url: string,
): Promise<Record<string, unknown> | string> {
  const { RayApi } = await import("../../drivers/ray/mod.ts");
  const platform = PLATFORMS[(described["platform"] ?? "cuda") as PlatformName];
  const key = platform?.rayKey ?? "GPU";
  let api: InstanceType<typeof RayApi> | undefined;
  try {
    api = new RayApi({ url, token: process.env["RAY_AUTH_TOKEN"] });
    const nodes = (await api.snapshot()).filter((n) => n.alive !== false);
    return {
      ...described,
      dataParallelBackend: "ray",
      nodes: nodes.map((n) => ({
        name: n.ip,
        address: n.ip,
        devices: Math.floor((n.available?.[key] ?? 0) + 1e-6),
      })),
    };
  } catch (error) {
    return (error as Error).message;
  } finally {
    api?.http.close();
  }
}

const NODE_NUMBERS = ["devices", "ranks", "port"];

/** `name[=address][,key=value]...`; a text says what is wrong. */
function parseNode(text: string): Record<string, unknown> | string {
  const [first = "", ...rest] = text.split(",");
  const at = first.indexOf("=");
  const node: Record<string, unknown> = at < 0
    ? { name: first }
    : { name: first.slice(0, at), address: first.slice(at + 1) };
  for (const pair of rest) {
    const [key = "", value = ""] = pair.split("=");
    if (!NODE_NUMBERS.includes(key)) {
      return `--node ${text}: ${key || "(nothing)"} is none of ${NODE_NUMBERS.join(", ")}`;
    }
    node[key] = Number(value);
  }
  return node;
}
