"""Makes a directory that vLLM takes for a model, without any download: a config.json of a very small decoder.

usage: make_model.py dense|moe DIRECTORY

There are no weights and no tokenizer: start it with --load-format dummy --skip-tokenizer-init.
"""

import json
import pathlib
import sys

COMMON = {
    "torch_dtype": "bfloat16",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
KINDS = {
    "dense": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    "moe": {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": None,
    },
}


def main() -> None:
    kind, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(COMMON | KINDS[kind], indent=2) + "\n")
    # Without this vLLM asks the hub for it.
    (directory / "generation_config.json").write_text("{}\n")


if __name__ == "__main__":
    main()
