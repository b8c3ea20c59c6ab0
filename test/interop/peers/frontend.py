"""A front-end with the real pyzmq and msgspec, for our engines and our coordinator.

With --engines it plays the head: it shakes hands as the original does (every wrong message is an error), answers INIT, and
then holds the input, output and coordinator sockets. With --subscribe it is only a subscriber of a coordinator. It
says what happens as JSON lines and takes commands on standard input:

    {"do": "utility", "rank": 0, "method": "pause_scheduler", "args": ["keep", false], "call": "7"}
    {"do": "add", "rank": 0, "id": "r1", "wave": 0}       {"do": "abort", "rank": 0, "ids": ["r1"]}
    {"do": "wave", "wave": 3, "exclude": 0}               {"do": "wake", "exclude": 1, "wave": 0}
    {"do": "scale", "size": 3}                            {"do": "raw", "hex": "c1"}             {"do": "stop"}
"""

import argparse
import json
import os
import socket
import sys
import time

import msgspec
import zmq
from wire import (
    EngineCoreRequest,
    EngineHandshakeMetadata,
    EngineZmqAddresses,
    decode,
    decode_outputs,
    encode,
    identity,
)


def say(**event):
    print(json.dumps(event, default=lambda o: o.hex() if isinstance(o, bytes) else str(o)), flush=True)


def free_ports(count):
    """Ports that nobody uses now, for the ranks' group."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Head:
    """The head front-end of a deployment, with its own coordinator."""

    def __init__(self, options, context, poller):
        self.options = options
        self.state = dict.fromkeys(range(options.engines), "NEW")
        self.stats = None
        self.subscribed = 0
        self.ports = free_ports(3)
        bind = lambda kind, name: self.bind(context, poller, kind, name)
        self.input = bind(zmq.ROUTER, "in")
        self.output = bind(zmq.PULL, "out")
        self.publish = bind(zmq.XPUB, "waves") if options.coordinator else None
        self.reports = bind(zmq.PULL, "reports") if options.coordinator else None
        self.handshake = bind(zmq.ROUTER, "handshake")
        where = lambda bound: bound and bound.getsockopt_string(zmq.LAST_ENDPOINT)
        self.addresses = EngineZmqAddresses(
            inputs=[where(self.input)],
            outputs=[where(self.output)],
            coordinator_input=where(self.publish),
            coordinator_output=where(self.reports),
        )
        say(event="bound", handshake=where(self.handshake))

    def bind(self, context, poller, kind, name):
        bound = context.socket(kind)
        if kind == zmq.XPUB:
            bound.setsockopt(zmq.XPUB_VERBOSE, 1)
        bound.setsockopt(zmq.LINGER, 0)
        bound.bind(f"ipc://{self.options.directory}/{name}" if self.options.ipc else "tcp://127.0.0.1:*")
        poller.register(bound, zmq.POLLIN)
        return bound

    def receive(self, source, frames):
        if source is self.handshake:
            self.shake(*frames)
        elif source is self.input:
            rank, payload = frames
            say(event="first_frame", rank=int.from_bytes(rank, "little"), facts=decode(payload) if payload else None)
        elif source is self.publish:
            self.subscribed += frames == [b"\x01"]
            if self.subscribed == self.options.engines:
                source.send(b"READY")
        elif frames == [b"ENGINE_CORE_DEAD"]:
            say(event="dead")
        else:
            outputs = msgspec.to_builtins(decode_outputs(frames[0]))
            event = "report" if source is self.reports else "output"
            say(event=event, **dict(zip(OUTPUT_FIELDS, outputs)))

    def shake(self, rank, payload):
        rank = int.from_bytes(rank, "little")
        message = decode(payload)
        status, local = message["status"], message["local"]
        expected = {"HELLO": "NEW", "READY": "CONNECTED"}.get(status)
        if self.state.get(rank) != expected or local != self.options.local:
            raise RuntimeError(f"Unexpected {status} message of engine {rank} in {self.state.get(rank)}: {message}")
        if status == "HELLO":
            self.state[rank] = "CONNECTED"
            config = {
                "data_parallel_master_ip": "127.0.0.1",
                "data_parallel_master_port": self.ports[0],
                "_data_parallel_master_port_list": self.ports[1:],
                "data_parallel_size": self.options.engines,
            }
            metadata = EngineHandshakeMetadata(self.addresses, config if self.options.engines > 1 else {})
            self.handshake.send_multipart([identity(rank), encode(metadata)])
        else:
            self.state[rank] = "READY"
        say(event=status.lower(), rank=rank, message=message)

    def command(self, do, rank=0, **order):
        if do == "utility":
            call = [0, int(order["call"]), order["method"], order["args"]]
            self.input.send_multipart([identity(rank), b"\x03", encode(call)])
        elif do == "add":
            request = EngineCoreRequest(
                order["id"], [1, 2, 3], None, None, None, time.time(), None, None, None, current_wave=order["wave"]
            )
            self.input.send_multipart([identity(rank), b"\x00", encode(request), *map(bytes.fromhex, order.get("aux", []))])
        elif do == "abort":
            self.input.send_multipart([identity(rank), b"\x01", encode(order["ids"])])
        elif do == "wave":
            self.publish.send_multipart([b"\x02", encode((order["wave"], order["exclude"]))])
        elif do == "raw":
            self.input.send_multipart([identity(rank), *map(bytes.fromhex, order["hex"].split(","))])
        else:
            raise ValueError(do)


OUTPUT_FIELDS = [
    "engine",
    "outputs",
    "stats",
    "timestamp",
    "utility",
    "finished",
    "wave_complete",
    "start_wave",
]

class Subscriber:
    """A front-end's side of a coordinator."""

    def __init__(self, options, context, poller):
        self.socket = context.socket(zmq.XSUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(options.subscribe)
        self.socket.send(b"\x01")
        self.quiet = options.quiet
        poller.register(self.socket, zmq.POLLIN)
        say(event="subscribed")

    def receive(self, _, frames):
        (frame,) = frames
        counts, wave, running = decode(frame)
        if not self.quiet:
            say(event="publish", counts=counts, wave=wave, running=running)

    def command(self, do, **order):
        if do == "wake":
            exclude = order["exclude"]
            self.socket.send(encode((bytes.fromhex(exclude) if isinstance(exclude, str) else exclude, order["wave"])))
        elif do == "scale":
            self.socket.send(encode(("SCALE_ELASTIC_EP", order["size"])))
        elif do == "raw":
            self.socket.send(bytes.fromhex(order["hex"]))
        else:
            raise ValueError(do)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--engines", type=int)
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--coordinator", action="store_true")
    parser.add_argument("--ipc", action="store_true")
    parser.add_argument("--directory")
    parser.add_argument("--subscribe")
    parser.add_argument("--quiet", action="store_true", help="do not say every publish")
    options = parser.parse_args()
    context, poller = zmq.Context(), zmq.Poller()
    peer = Subscriber(options, context, poller) if options.subscribe else Head(options, context, poller)
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    pending = b""
    while True:
        for source, _ in poller.poll():
            if source == sys.stdin.fileno():
                chunk = os.read(source, 65536)
                if not chunk:
                    sys.exit(0)
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    order = json.loads(line)
                    if order["do"] == "stop":
                        sys.exit(0)
                    peer.command(**order)
            else:
                peer.receive(source, source.recv_multipart())


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        say(event="error", text=f"{type(error).__name__}: {error}")
        raise
