/** What we would say to engines and front-ends, read by vLLM's own classes, where no engine on a CPU can be brought to hear it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import {
  encodeEngineOutputs,
  encodeInit,
  encodeOwnRequest,
  encodeUtilityCall,
  parallelConfig,
  toHex,
  utilities,
  utilityReply,
} from "../../../src/protocol/mod.ts";
import { ENVIRONMENT, VERSIONS } from "./head.ts";

const addresses = {
  inputs: ["tcp://127.0.0.1:1"],
  outputs: ["tcp://127.0.0.1:2"],
  coordinatorInput: "tcp://127.0.0.1:3",
  coordinatorOutput: "tcp://127.0.0.1:4",
  frontendStatsPublish: null,
};

for (const vllm of VERSIONS) {
  const options = vllm.missing ? { skip: vllm.missing } : { timeout: 300_000 };
  const old = vllm.generation === "0.12";

  test(`vLLM ${vllm.version}: its own classes read what we say`, options, () => {
    const config = parallelConfig({
      masterIp: "10.0.0.1",
      masterPort: 5,
      masterPortList: [1, 2],
      size: 2,
    });
    const bootstrap = {
      newDataParallelSize: 3,
      newDataParallelRank: -1,
      newDataParallelRankLocal: -1,
      newDataParallelMasterIp: "10.0.0.1",
      newDataParallelMasterPort: 5,
    };
    const newer = { ...bootstrap, newDataParallelMasterPortList: [1, 2], coordStorePort: 9 };
    const said: [string, Uint8Array][] = [
      ["init", encodeInit({ addresses, parallelConfig: config, parallelConfigHash: null })],
      ["init", encodeInit({ addresses, parallelConfig: {} })],
      [
        "reconfigure",
        encodeUtilityCall({
          clientIndex: 0,
          callId: "7",
          ...utilities.reinitializeDistributed(old ? bootstrap : newer),
        }),
      ],
      [
        "outputs",
        encodeEngineOutputs({
          engineIndex: 1,
          outputs: [{ requestId: "r", newTokenIds: [4, 5], finishReason: "length" }],
          utilityOutput: utilityReply.of("7", true),
          waveComplete: 0,
        }),
      ],
      ...(old ? [] : [[
        "request",
        encodeOwnRequest({
          requestId: "r",
          promptTokenIds: [1, 2],
          arrivalTime: 1.5,
          dataParallelRank: null,
          clientIndex: 0,
          currentWave: 3,
        }),
      ]] as [string, Uint8Array][]),
    ];
    const out = execFileSync(vllm.python, ["test/interop/vllm/decode.py"], {
      input: JSON.stringify(said.map(([kind, bytes]) => [kind, toHex(bytes)])),
      env: { ...process.env, ...ENVIRONMENT },
      stdio: ["pipe", "pipe", "ignore"],
    }).toString();
    const [init, empty, reconfigure, outputs, request] = JSON.parse(
      out.trim().split("\n").at(-1)!,
    );
    assert.deepEqual(init.addresses, {
      inputs: addresses.inputs,
      outputs: addresses.outputs,
      coordinator_input: addresses.coordinatorInput,
      coordinator_output: addresses.coordinatorOutput,
      frontend_stats_publish_address: null,
    });
    assert.deepEqual([init.parallel_config, empty.parallel_config], [config, {}]);
    const first = {
      new_data_parallel_size: 3,
      new_data_parallel_rank: -1,
      new_data_parallel_rank_local: -1,
      new_data_parallel_master_ip: "10.0.0.1",
      new_data_parallel_master_port: 5,
    };
    assert.deepEqual(
      reconfigure,
      // 0.12 has five members, 0.32 seven, and neither an operation's id.
      old ? first : { ...first, new_data_parallel_master_port_list: [1, 2], coord_store_port: 9 },
    );
    const { engine_index, wave_complete, start_wave, outputs: [output] } = outputs;
    assert.deepEqual([engine_index, wave_complete, start_wave], [1, 0, null]);
    assert.deepEqual([output.request_id, output.new_token_ids], ["r", [4, 5]]);
    if (!old) {
      assert.deepEqual([request.request_id, request.prompt_token_ids, request.current_wave], [
        "r",
        [1, 2],
        3,
      ]);
    }
  });
}
