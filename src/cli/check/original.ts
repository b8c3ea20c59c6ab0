/** What the original's rules lead to where a model of ours holds: the shortest way there, drawn. */
import { upstreamDefects } from "../../../models/upstream/mod.ts";
import { check } from "../../checker/mod.ts";
import { drawn } from "./found.ts";

/** @param name of the defect, without `upstream/` */
export async function originalText(name: string, diagram: string): Promise<string> {
  const { model, what } = upstreamDefects.find((defect) => defect.name === name)!;
  const [violation] = check(model).violations;
  return [
    `The original's rules in its place (muster check upstream/${name}): ${what}`,
    "",
    await drawn(violation!.trace!, diagram),
  ].join("\n");
}
