// Runs a test command; when tests fail, runs their files once more, each alone, on the machine that is quiet by then.
// Both runs stay in the output, and the last line names the files that needed the second. A second failure counts.
//
//   node scripts/ci-tests.mjs node npm test
//   node scripts/ci-tests.mjs deno npm run test:deno
import { spawn } from "node:child_process";
import process from "node:process";

const [runtime, ...command] = process.argv.slice(2);
const alone = {
  node: (file) => ["node", "--import", "tsx", "--test", "--test-timeout=600000", file],
  deno: (file) => ["npx", "deno", "test", "-A", "--no-check", file],
}[runtime];
if (alone === undefined || command.length === 0) {
  console.error("usage: node scripts/ci-tests.mjs node|deno COMMAND...");
  process.exit(2);
}

/** Where node:test (as TAP and as text) and deno test say which file a failure is in. */
const places = [
  /^\s*location: '(?:file:\/\/)?(\S+?\.test\.ts):\d+:\d+'/,
  /^\s*test at (\S+?\.test\.ts):\d+:\d+/,
  / => (\S+?\.test\.ts):\d+:\d+$/,
  /^(\S+?\.test\.ts) \(uncaught error\)/,
];

function run([program, ...args]) {
  return new Promise((done) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    const failed = new Set();
    let rest = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      process.stdout.write(text);
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (/^\s*\S+ => .* \.\.\. /.test(line)) continue; // progress of deno test, not its list of failures
        for (const place of places) {
          const found = place.exec(line);
          if (found) failed.add(found[1]);
        }
      }
    });
    child.on("close", (code) => done({ code: code ?? 1, failed: [...failed] }));
  });
}

const first = await run(command);
if (first.code === 0) process.exit(0);
if (first.failed.length === 0 || first.failed.length > 12) {
  console.log(`\n==> failed, in ${first.failed.length || "unnamed"} files: not tried again`);
  process.exit(first.code);
}
console.log(`\n==> once more, each alone: ${first.failed.join(" ")}`);
const broken = [];
for (const file of first.failed) if ((await run(alone(file))).code !== 0) broken.push(file);
console.log(
  broken.length === 0
    ? `\n==> passed alone, after a failure among the others: ${first.failed.join(" ")}`
    : `\n==> failed twice: ${broken.join(" ")}`,
);
process.exit(broken.length === 0 ? 0 : 1);
