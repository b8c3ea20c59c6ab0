/**
 * How good the models' properties are: every machine is broken in every way, and its models are checked each time.
 *
 *     npm run mutants                  all machines; minutes
 *     npm run mutants waves engine     only these
 */
import process from "node:process";
import { mutationScore, mutationText } from "../src/checker/mod.ts";
import { judged } from "../models/mutation.ts";

const wanted = process.argv.slice(2);
for (const name of wanted.length === 0 ? Object.keys(judged) : wanted) {
  const one = judged[name];
  if (one === undefined) {
    console.error(`there is no machine ${name}: ${Object.keys(judged).join(", ")}`);
    process.exitCode = 2;
    break;
  }
  const began = Date.now();
  const score = mutationScore(one.models(), one.machine, {
    ...(process.env["MUTANTS_VERBOSE"] === undefined ? {} : {
      onMutant: (what, fate) =>
        console.error(`${fate.is}: ${what}${fate.is === "caught" ? ` -- ${fate.by}` : ""}`),
    }),
  });
  console.log(mutationText(score));
  console.error(`${name}: ${((Date.now() - began) / 1000).toFixed(0)} s`);
}
