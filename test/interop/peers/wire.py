"""The wire's messages as msgspec types, encoded and decoded by the peers' own library.

Layouts are those that real engines declare: dataclasses and maps for the handshake, positional arrays for what
crosses the bus. Decoding is typed, so that a message of ours that a real engine would refuse is refused here.
"""

from dataclasses import dataclass, field
from typing import Any, Optional, Union

import msgspec


@dataclass
class EngineZmqAddresses:
    inputs: list[str]
    outputs: list[str]
    coordinator_input: Optional[str] = None
    coordinator_output: Optional[str] = None
    frontend_stats_publish_address: Optional[str] = None


@dataclass
class EngineHandshakeMetadata:
    addresses: EngineZmqAddresses
    parallel_config: dict[str, Union[int, str, list[int]]]


@dataclass
class ScaleUpMetadata:
    engine_metadata: EngineHandshakeMetadata
    num_redundant_experts: int


@dataclass
class ReadyResponse:
    max_model_len: int
    num_gpu_blocks: int
    block_size: int
    dp_stats_address: Optional[str]
    dtype: str
    vllm_version: str
    world_size: int
    data_parallel_size: int


class UtilityResult(msgspec.Struct, array_like=True):
    type: Any
    value: Any


class UtilityOutput(msgspec.Struct, array_like=True, gc=False):
    call_id: int
    failure_message: Optional[str] = None
    result: Optional[UtilityResult] = None


class EngineCoreOutput(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    request_id: str
    new_token_ids: list[int]
    new_logprobs: Any = None
    new_prompt_logprobs_tensors: Any = None
    pooling_output: Any = None
    finish_reason: Optional[int] = None


@dataclass
class PrefixCacheStats:
    reset: bool = False
    requests: int = 0
    queries: int = 0
    hits: int = 0
    preempted_requests: int = 0
    preempted_queries: int = 0
    preempted_hits: int = 0


@dataclass
class SchedulerStats:
    num_running_reqs: int = 0
    num_waiting_reqs: int = 0
    step_counter: int = 0
    current_wave: int = 0
    kv_cache_usage: float = 0.0
    encoder_cache_usage: float = 0.0
    prefix_cache_stats: PrefixCacheStats = field(default_factory=PrefixCacheStats)
    connector_prefix_cache_stats: Any = None
    kv_cache_eviction_events: list[Any] = field(default_factory=list)
    spec_decoding_stats: Any = None
    kv_connector_stats: Any = None
    waiting_lora_adapters: dict[str, int] = field(default_factory=dict)
    running_lora_adapters: dict[str, int] = field(default_factory=dict)
    cudagraph_stats: Any = None
    perf_stats: Any = None


class EngineCoreOutputs(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    engine_index: int = 0
    outputs: list[EngineCoreOutput] = []
    scheduler_stats: Optional[SchedulerStats] = None
    timestamp: float = 0.0
    utility_output: Optional[UtilityOutput] = None
    finished_requests: Optional[set[str]] = None
    wave_complete: Optional[int] = None
    start_wave: Optional[int] = None


class EngineCoreRequest(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    request_id: str
    prompt_token_ids: Optional[list[int]]
    mm_features: Any
    sampling_params: Any
    pooling_params: Any
    arrival_time: float
    lora_request: Any
    cache_salt: Optional[str]
    data_parallel_rank: Optional[int]
    prompt_embeds: Any = None
    prompt_is_token_ids: Any = None
    client_index: int = 0
    current_wave: int = 0
    priority: int = 0


class ReconfigureDistributedRequest(msgspec.Struct):
    new_data_parallel_size: int
    new_data_parallel_rank: int
    new_data_parallel_rank_local: int
    new_data_parallel_master_ip: str
    new_data_parallel_master_port: int
    new_data_parallel_master_port_list: list[int]
    coord_store_port: int
    operation_id: str = ""


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode
decode_init = msgspec.msgpack.Decoder(EngineHandshakeMetadata).decode
decode_scale_up = msgspec.msgpack.Decoder(ScaleUpMetadata).decode
decode_request = msgspec.msgpack.Decoder(EngineCoreRequest).decode
decode_outputs = msgspec.msgpack.Decoder(EngineCoreOutputs).decode


def identity(rank: int) -> bytes:
    return rank.to_bytes(2, "little")
