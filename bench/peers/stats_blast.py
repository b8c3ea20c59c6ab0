"""Sends statistics as fast as it can, encoded once by the original's library.

usage: stats_blast.py BACK_OUTPUT ENGINES MESSAGES
"""

import sys

import msgspec
import zmq


def message(rank: int, step: int) -> bytes:
    stats = {
        "num_running_reqs": step % 100,
        "num_waiting_reqs": rank % 7,
        "step_counter": step,
        "current_wave": 0,
        "kv_cache_usage": 0.5,
    }
    return msgspec.msgpack.encode([rank, [], stats, 0.5, None, None, None, None])


def main() -> None:
    address, engines, messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, engines + 16)
    pushes = []
    for _ in range(engines):
        push = context.socket(zmq.PUSH)
        push.sndhwm = 0
        push.linger = -1
        push.connect(address)
        pushes.append(push)
    steps = -(-messages // engines)
    encoded = [[message(rank, step % 64) for rank in range(engines)] for step in range(min(steps, 64))]
    print("ready", flush=True)
    sys.stdin.readline()
    sent = 0
    for step in range(steps):
        row = encoded[step % len(encoded)]
        for rank in range(engines):
            if sent == messages:
                break
            pushes[rank].send(row[rank])
            sent += 1
    sys.stdin.readline()


main()
