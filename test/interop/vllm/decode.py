"""Decodes our bytes with vLLM's own classes: a JSON list of [kind, hex] on standard input, a JSON list of what they came to on standard output."""

import dataclasses
import json
import sys

import msgspec
from vllm.v1.engine import EngineCoreOutputs, EngineCoreRequest, ReconfigureDistributedRequest
from vllm.v1.engine.utils import EngineHandshakeMetadata
from vllm.v1.serial_utils import MsgpackDecoder


def decoded(kind: str, data: bytes):
    if kind == "init":
        return msgspec.msgpack.decode(data, type=EngineHandshakeMetadata)
    if kind == "reconfigure":
        _, _, _, args = msgspec.msgpack.decode(data)
        return msgspec.convert(args[0], type=ReconfigureDistributedRequest)
    return MsgpackDecoder({"outputs": EngineCoreOutputs, "request": EngineCoreRequest}[kind]).decode(data)


def plain(value):
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    return value if isinstance(value, (int, float, str, dict, type(None))) else repr(value)


print(json.dumps([plain(decoded(kind, bytes.fromhex(text))) for kind, text in json.load(sys.stdin)]))
