"""A coordinator that only decodes statistics and stores them: how fast doing nothing else is.

usage: stats_loop.py ENGINES MESSAGES. Prints the address, then the seconds from the first message to the last.
"""

import sys
import time

import msgspec
import zmq


class Stats(msgspec.Struct):
    num_running_reqs: int = 0
    num_waiting_reqs: int = 0
    step_counter: int = 0
    current_wave: int = 0
    kv_cache_usage: float = 0.0


class Outputs(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    engine_index: int = 0
    outputs: list = []
    scheduler_stats: Stats | None = None
    timestamp: float = 0.0
    utility_output: list | None = None
    finished_requests: list[str] | None = None
    wave_complete: int | None = None
    start_wave: int | None = None


def main() -> None:
    engines, messages = int(sys.argv[1]), int(sys.argv[2])
    context = zmq.Context()
    pull = context.socket(zmq.PULL)
    pull.rcvhwm = 0
    pull.setsockopt(zmq.BACKLOG, 4096)
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    print(f"tcp://127.0.0.1:{port}", flush=True)
    decode = msgspec.msgpack.Decoder(Outputs).decode
    rows = [[0, 0] for _ in range(engines)]
    started = None
    for _ in range(messages):
        said = decode(pull.recv())
        started = started or time.monotonic()
        stats = said.scheduler_stats
        rows[said.engine_index] = [stats.num_waiting_reqs, stats.num_running_reqs]
    print(time.monotonic() - started, flush=True)


main()
