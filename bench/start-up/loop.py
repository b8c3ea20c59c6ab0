"""What a front-end does at start-up, with pyzmq and msgspec: says its address, then "formed" when all are READY.

`loop.py COUNT bare` is the least that can be done. `loop.py COUNT original` does what vLLM's front-end does for every message: it polls, looks
for the identity in its list of engines, goes through its checks in their order, and encodes INIT for each engine.
"""

import sys

import msgspec
import zmq

count, kind = int(sys.argv[1]), sys.argv[2]
ADDRESSES = {
    "inputs": ["tcp://127.0.0.1:5001"],
    "outputs": ["tcp://127.0.0.1:5002"],
    "coordinator_input": None,
    "coordinator_output": None,
    "frontend_stats_publish_address": None,
}


def bare(router: zmq.Socket) -> None:
    init = msgspec.msgpack.encode({"addresses": ADDRESSES, "parallel_config": {}})
    states = {rank.to_bytes(2, "little"): "NEW" for rank in range(count)}
    blocks, pending = 0, count
    while pending:
        identity, payload = router.recv_multipart()
        message = msgspec.msgpack.decode(payload)
        status, local, state = message["status"], message["local"], states[identity]
        if status == "HELLO" and state == "NEW" and not local and message["headless"]:
            router.send_multipart([identity, init])
            states[identity] = "CONNECTED"
        elif status == "READY" and state == "CONNECTED":
            blocks += message["num_gpu_blocks"]
            states[identity] = "READY"
            pending -= 1
        else:
            raise RuntimeError(message)


class Engine:
    def __init__(self, rank: int, local: bool) -> None:
        self.identity = rank.to_bytes(2, "little")
        self.rank = rank
        self.local = local
        self.state = "NEW"


class Init(msgspec.Struct):
    addresses: dict
    parallel_config: dict


def original(router: zmq.Socket) -> None:
    engines = [Engine(rank, False) for rank in range(count)]
    to_connect, to_start = [0, count], [0, 0]
    blocks = 0
    poller = zmq.Poller()
    poller.register(router, zmq.POLLIN)
    while any(to_connect) or any(to_start):
        events = poller.poll(10_000)
        if not events:
            continue
        if len(events) > 1 or events[0][0] is not router:
            raise RuntimeError("not the handshake's socket")
        identity, payload = router.recv_multipart()
        rank = int.from_bytes(identity, "little")
        engine = next((e for e in engines if e.identity == identity), None)
        if engine is None:
            raise RuntimeError(f"unexpected rank {rank}")
        message = msgspec.msgpack.decode(payload)
        status, local, headless = message["status"], message["local"], message["headless"]
        if local != engine.local:
            raise RuntimeError(f"rank {rank}: local is {local}")
        if not local and not headless:
            raise RuntimeError(f"rank {rank}: headless is missing")
        if status == "HELLO" and engine.state == "NEW":
            init = msgspec.msgpack.encode(Init(addresses=ADDRESSES, parallel_config={}))
            router.send_multipart([identity, init])
            to_connect[0 if local else 1] -= 1
            to_start[0 if local else 1] += 1
            engine.state = "CONNECTED"
        elif status == "READY" and engine.state == "CONNECTED":
            blocks += message["num_gpu_blocks"]
            to_start[0 if local else 1] -= 1
            engine.state = "READY"
        else:
            raise RuntimeError(f"rank {rank}: {status} in {engine.state}")


router = zmq.Context().socket(zmq.ROUTER)
router.setsockopt(zmq.BACKLOG, 4096)
router.setsockopt(zmq.RCVHWM, 0)
router.setsockopt(zmq.SNDHWM, 0)
router.bind("tcp://127.0.0.1:*")
print(router.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
{"bare": bare, "original": original}[kind](router)
print("formed", flush=True)
