import assert from "node:assert/strict";
import { test } from "node:test";
import { muster } from "../e2e/support.ts";

const serve = (...flags: string[]) => muster("serve", "--data-parallel-size", "2", ...flags);

test("--launch vllm says what is missing: the model, or the command", async () => {
  const address = ["--launch", "vllm", "--data-parallel-address", "127.0.0.1"];
  const model = await serve(...address, "--data-parallel-rpc-port", "0");
  assert.notEqual(model.code, 0);
  assert.match(model.err, /--launch vllm needs --model: a directory or a name that vLLM can load/);
  const command = await serve(...address, "--model", "m", "--vllm", "/nowhere/vllm");
  assert.notEqual(command.code, 0);
  assert.match(command.err, /vLLM's command cannot be started: \/nowhere\/vllm does not exist\./);
  assert.match(command.err, /pip install vllm.*\[program-missing\]/);
});

test("a device for two ranks, or too few lists, is refused", async () => {
  const twice = await serve("--launch", "reference", "--devices", "0;0");
  assert.notEqual(twice.code, 0);
  assert.match(twice.err, /\[devices-twice\]/);
  const wrong = await serve("--launch", "reference", "--devices", "0;");
  assert.match(wrong.err, /devices by commas, ranks by semicolons/);
});
