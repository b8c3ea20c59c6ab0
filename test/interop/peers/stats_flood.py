"""Engines that do nothing but report statistics, and front-ends that do nothing but listen.

usage: stats_flood.py BACK_PUBLISH BACK_OUTPUT FRONT_PUBLISH ENGINES PER_SECOND SECONDS

Encodes with the original's own library: EngineCoreOutputs as a positional array, its statistics as a map. Prints one
line of JSON: messages sent, publishes heard, the gaps between publishes of counts in milliseconds, and the last row of counts.
"""

import json
import sys
import time

import msgspec
import zmq


class Stats(msgspec.Struct):
    num_running_reqs: int
    num_waiting_reqs: int
    step_counter: int
    current_wave: int
    kv_cache_usage: float


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
    back_publish, back_output, front_publish = sys.argv[1:4]
    engines, per_second, seconds = (int(x) for x in sys.argv[4:7])
    context = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 2 * engines + 16)
    subscribers = []
    pushes = []
    for _ in range(engines):
        subscriber = context.socket(zmq.XSUB)
        subscriber.connect(back_publish)
        subscriber.send(b"\x01")
        subscribers.append(subscriber)
        push = context.socket(zmq.PUSH)
        push.linger = 4000
        push.sndhwm = 0
        push.connect(back_output)
        pushes.append(push)
    for subscriber in subscribers:
        assert subscriber.recv() == b"READY"
    front = context.socket(zmq.XSUB)
    front.connect(front_publish)
    front.send(b"\x01")

    encoder = msgspec.msgpack.Encoder()
    decoder = msgspec.msgpack.Decoder()
    started = time.monotonic()
    sent = 0
    heard = []
    last = None
    step = 0
    while (now := time.monotonic()) < started + seconds:
        due = int((now - started) * per_second)
        while sent < due:
            rank = sent % engines
            if rank == 0:
                step += 1
            message = Outputs(
                engine_index=rank,
                scheduler_stats=Stats(step % 100, rank % 7, step, 0, 0.5),
                timestamp=now,
            )
            pushes[rank].send(encoder.encode(message))
            sent += 1
        while front.poll(0):
            counts, _wave, _running = decoder.decode(front.recv())
            if counts is not None:
                heard.append(time.monotonic())
                last = counts
        time.sleep(0.002)
    gaps = sorted((b - a) * 1000 for a, b in zip(heard, heard[1:]))
    quantile = lambda q: gaps[min(len(gaps) - 1, int(q * len(gaps)))] if gaps else None
    print(
        json.dumps(
            {
                "sent": sent,
                "published": len(heard),
                "gap50": quantile(0.5),
                "gap95": quantile(0.95),
                "gap100": quantile(1.0),
                "rows": len(last or []),
                "columns": len((last or [[]])[0]),
            }
        )
    )


main()
