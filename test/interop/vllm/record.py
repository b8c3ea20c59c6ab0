"""Plays the head of a data-parallel vLLM with plain pyzmq and records every frame: what the wire really says, seen without Muster.

usage (with the Python of the environment that vLLM is in):
  record.py OUT.jsonl MODEL [--size N] [--kill RANK] [--empty-parallel-config] [-- FLAGS OF vllm serve]

One JSON object a line: {"t": seconds, "socket": name, "to" | "from": rank or null, "frames": [hex, ...]}; "from" what the engines sent,
"to" what they were sent. The first line says which version it was and how it was started, the last one how it ended.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import msgspec
import zmq

WITHIN_S = 300.0


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Head:
    def __init__(self, out, size: int, empty: bool) -> None:
        self.out, self.size, self.empty = out, size, empty
        self.began = time.monotonic()
        self.context = zmq.Context()
        self.sockets: dict[str, tuple[zmq.Socket, str]] = {}
        for name, kind in [
            ("handshake", zmq.ROUTER),
            ("input", zmq.ROUTER),
            ("output", zmq.PULL),
            ("backPublish", zmq.XPUB),
            ("backOutput", zmq.PULL),
        ]:
            s = self.context.socket(kind)
            if kind == zmq.XPUB:
                s.setsockopt(zmq.XPUB_VERBOSE, 1)
            s.bind("tcp://127.0.0.1:*")
            self.sockets[name] = (s, s.getsockopt(zmq.LAST_ENDPOINT).decode().rstrip("\0"))
        self.poller = zmq.Poller()
        for s, _ in self.sockets.values():
            self.poller.register(s, zmq.POLLIN)
        self.ports = [free_port() for _ in range(5)]
        self.ready: set[int] = set()
        self.greeted: set[int] = set()
        self.subscribed = 0
        self.replies: dict[int, list] = {}
        self.tokens: dict[str, list[int]] = {}
        self.finished: set[str] = set()
        self.waves: list[int] = []
        self.dead = 0
        self.last_stats: list | None = None

    def note(self, line: dict) -> None:
        self.out.write(json.dumps({"t": round(time.monotonic() - self.began, 3), **line}) + "\n")
        self.out.flush()

    def send(self, name: str, rank: int | None, *frames: bytes) -> None:
        self.note({"socket": name, "to": rank, "frames": [f.hex() for f in frames]})
        address = [] if rank is None else [rank.to_bytes(2, "little")]
        self.sockets[name][0].send_multipart([*address, *frames])

    def init(self) -> bytes:
        address = {name: endpoint for name, (_, endpoint) in self.sockets.items()}
        return msgspec.msgpack.encode({
            "addresses": {
                "inputs": [address["input"]],
                "outputs": [address["output"]],
                "coordinator_input": address["backPublish"],
                "coordinator_output": address["backOutput"],
                "frontend_stats_publish_address": None,
            },
            "parallel_config": {} if self.empty else {
                "data_parallel_master_ip": "127.0.0.1",
                "data_parallel_master_port": self.ports[4],
                "_data_parallel_master_port_list": self.ports[:4],
                "data_parallel_size": self.size,
            },
            "parallel_config_hash": None,
        })

    def turn(self, ms: int = 100) -> None:
        for s, _ in self.poller.poll(ms):
            name = next(n for n, (t, _) in self.sockets.items() if t is s)
            frames = s.recv_multipart()
            rank = None
            if name in ("handshake", "input"):
                rank, frames = int.from_bytes(frames[0], "little"), frames[1:]
            self.note({"socket": name, "from": rank, "frames": [f.hex() for f in frames]})
            self.take(name, rank, frames)

    def take(self, name: str, rank: int | None, frames: list[bytes]) -> None:
        if name == "handshake":
            status = msgspec.msgpack.decode(frames[0])["status"]
            if status == "HELLO":
                self.send("handshake", rank, self.init())
            else:
                self.ready.add(rank)
        elif name == "input":
            self.greeted.add(rank)
        elif name == "backPublish" and frames[0] == b"\x01":
            self.subscribed += 1
            if self.subscribed >= self.size:
                self.send("backPublish", None, b"READY")
        elif name == "output":
            if frames[0] == b"ENGINE_CORE_DEAD":
                self.dead += 1
                return
            message = msgspec.msgpack.decode(frames[0])
            for output in message[1]:
                self.tokens.setdefault(output[0], []).extend(output[1])
            self.finished |= set(message[5] or []) | {
                o[0] for o in message[1] if len(o) > 5 and o[5] is not None
            }
            if message[4] is not None:
                self.replies[message[4][0]] = message[4]
        elif name == "backOutput":
            message = msgspec.msgpack.decode(frames[0])
            if message[2] is not None:
                self.last_stats = message
            if message[6] is not None:
                self.waves.append(message[6])
            elif message[7] is not None:
                # The engine began a wave by itself: the coordinator starts it in all the others.
                wave = msgspec.msgpack.encode([message[7], message[0]])
                self.send("backPublish", None, b"\x02", wave)

    def until(self, done, what: str, within: float = 60.0) -> bool:
        end = time.monotonic() + within
        while not done():
            if time.monotonic() > end:
                print("not seen:", what, self.dead, file=sys.stderr)
                return False
            self.turn()
        return True

    def call(self, rank: int, call_id: int, method: str, *args) -> None:
        payload = msgspec.msgpack.encode([0, call_id, method, list(args)])
        self.send("input", rank, b"\x03", payload)


def request(name: str, wave: int) -> list[bytes]:
    """A request as vLLM's own front-end encodes it."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.serial_utils import MsgpackEncoder

    fields = {
        "request_id": name,
        "prompt_token_ids": [1, 7, 8, 9],
        "mm_features": None,
        "sampling_params": SamplingParams(
            temperature=0.0, max_tokens=5, ignore_eos=True, detokenize=False
        ),
        "pooling_params": None,
        "eos_token_id": 2,
        "arrival_time": 1.5,
        "lora_request": None,
        "cache_salt": None,
        "data_parallel_rank": None,
        "current_wave": wave,
    }
    known = EngineCoreRequest.__struct_fields__
    made = EngineCoreRequest(**{k: v for k, v in fields.items() if k in known})
    return [bytes(b) for b in MsgpackEncoder().encode(made)]


def session(head: Head, ranks: range, moe: bool, kill: int | None, log: pathlib.Path) -> None:
    for r in ranks:
        head.call(r, 100 + r, "is_scheduler_paused")
    head.call(0, 2**63 + 7, "reset_prefix_cache")
    head.call(0, 200, "no_such_method")
    head.until(lambda: len(head.replies) == len(ranks) + 2, "replies", 120)

    # A request to rank 0. Its front-end tells the coordinator, which starts the wave of the others.
    head.send("input", 0, b"\x00", *request("one", 0))
    if moe:
        head.send("backPublish", None, b"\x02", msgspec.msgpack.encode([0, 0]))
    head.until(lambda: "one" in head.finished, "the request's end")
    print("tokens of one:", head.tokens.get("one"), file=sys.stderr)
    if moe:
        head.until(lambda: head.waves, "the wave's end")
    # One that is of a wave which has passed: the engine must start the next one by itself.
    head.send("input", 1, b"\x00", *request("two", 0))
    head.until(lambda: "two" in head.finished, "the second request's end", 20)
    if moe:
        head.until(lambda: len(head.waves) > 1, "the second wave's end", 20)

    for r in ranks:
        head.call(r, 300 + r, "pause_scheduler", "keep", False)
    head.until(lambda: all(300 + r in head.replies for r in ranks), "pauses", 20)
    for r in ranks:
        head.call(r, 400 + r, "is_scheduler_paused")
    head.until(lambda: all(400 + r in head.replies for r in ranks), "paused", 20)
    for r in ranks:
        head.call(r, 500 + r, "resume_scheduler")
    head.until(lambda: all(500 + r in head.replies for r in ranks), "resumes", 20)

    if kill is not None:
        pid = re.search(rf"\(EngineCore_DP{kill} pid=(\d+)\)", log.read_text())
        print("killing rank", kill, file=sys.stderr)
        os.kill(int(pid[1]), signal.SIGKILL)
        head.until(lambda: False, "anything after the kill", 15)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("model")
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--kill", type=int)
    parser.add_argument("--empty-parallel-config", action="store_true")
    parser.add_argument("flags", nargs="*")
    a = parser.parse_args()
    vllm = pathlib.Path(sys.executable).parent / "vllm"
    moe = "moe" in pathlib.Path(a.model).name
    with open(a.out, "w") as out, tempfile.TemporaryDirectory() as home:
        head = Head(out, a.size, a.empty_parallel_config)
        port = head.sockets["handshake"][1].rsplit(":", 1)[1]
        flags = [
            "--headless", "--data-parallel-size", str(a.size),
            "--data-parallel-size-local", str(a.size), "--data-parallel-start-rank", "0",
            "--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", port,
            "--load-format", "dummy", "--skip-tokenizer-init", "--max-model-len", "128",
            "--enforce-eager", "--max-num-seqs", "4",
            # The CPU backend refuses to start when less than this share of the memory is free.
            "--gpu-memory-utilization", "0.1", *a.flags,
        ]
        from importlib.metadata import version

        head.note({"vllm": version("vllm"), "model": pathlib.Path(a.model).name, "size": a.size,
                   "flags": flags[11:]})
        log = pathlib.Path(home) / "log"
        environment = {
            "PATH": os.environ["PATH"], "HOME": home, "OMP_NUM_THREADS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "NO_COLOR": "1",
            "PYTHONPATH": str(pathlib.Path(__file__).parent / "plugin"),
        }
        with log.open("w") as sink:
            engines = subprocess.Popen(
                [vllm, "serve", a.model, *flags], env=environment, stdout=sink,
                stderr=subprocess.STDOUT, start_new_session=True,
            )
        try:
            end = time.monotonic() + WITHIN_S
            while len(head.ready) < a.size and engines.poll() is None and time.monotonic() < end:
                head.turn(500)
            if len(head.ready) == a.size:
                session(head, range(a.size), moe, a.kill, log)
            if engines.poll() is None:
                os.killpg(engines.pid, signal.SIGTERM)
                end = time.monotonic() + 20
                while engines.poll() is None and time.monotonic() < end:
                    head.turn(200)
        finally:
            if engines.poll() is None:
                os.killpg(engines.pid, signal.SIGKILL)
            head.note({"ended": engines.wait()})
            if len(head.ready) < a.size:
                sys.stderr.write(log.read_text()[-4000:])


if __name__ == "__main__":
    main()
