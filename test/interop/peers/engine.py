"""Engines without a GPU, with the real pyzmq and msgspec: one process plays one rank or many.

It speaks the engine's side of the handshake, of the bus and of the coordinator, says what happens as JSON lines on
standard output, and takes commands as JSON lines on standard input:

    {"do": "stats", "rank": 0, "running": 1, "waiting": 2, "step": 3, "wave": 0}
    {"do": "wave_complete", "rank": 0, "wave": 3}     {"do": "start_wave", "rank": 1, "wave": 4}
    {"do": "notify", "rank": 0, "type": "RECONFIGURE_FINISHED"}
    {"do": "status", "rank": 0, "status": "unhealthy"}
    {"do": "dead", "rank": 0}                         {"do": "raw", "rank": 0, "to": "output", "hex": "c1"}
    {"do": "stop"}
"""

import argparse
import heapq
import itertools
import json
import os
import sys
import time

import msgspec
import zmq
from wire import (
    EngineCoreOutput,
    EngineCoreOutputs,
    ReadyResponse,
    ReconfigureDistributedRequest,
    SchedulerStats,
    UtilityOutput,
    UtilityResult,
    decode,
    decode_init,
    decode_request,
    decode_scale_up,
    encode,
    identity,
)

ADD, ABORT, START_DP_WAVE, UTILITY = b"\x00", b"\x01", b"\x02", b"\x03"


def say(**event):
    print(json.dumps(event), flush=True)


class Group:
    """What the ranks of a data-parallel group decide together: that nobody has anything to do."""

    def __init__(self, engines):
        self.engines = engines

    def step(self):
        engines = [e for e in self.engines if e.running]
        if not engines or any(e.requests for e in self.engines):
            return
        self.engines[0].report(wave_complete=self.engines[0].wave)
        for engine in self.engines:
            engine.wave += 1
            engine.running = False
            engine.steps = 0


class Engine:
    def __init__(self, rank, options, context, poller, after):
        self.rank, self.options, self.after = rank, options, after
        self.context, self.poller = context, poller
        self.addresses = None
        self.inputs, self.outputs = [], []
        self.subscriber = self.reporter = None
        self.paused = False
        self.running = False
        self.wave = 0
        self.steps = 0
        self.requests = set()
        self.prepared = None
        self.joined = False
        self.handshakes = []
        self.after(options.boot_ms, self.hello)

    # ---- start-up --------------------------------------------------------------------------------------------

    def contacts(self):
        """The handshake with the head, and the one with the own front-end where that is another."""
        o = self.options
        yield o.handshake, o.local, o.headless
        if o.client_handshake:
            yield o.client_handshake, True, False

    def socket(self, kind, address, linger=5000, **options):
        socket = self.context.socket(kind)
        socket.setsockopt(zmq.LINGER, linger)
        if "[" in address:
            socket.setsockopt(zmq.IPV6, 1)
        for name, value in options.items():
            socket.setsockopt(getattr(zmq, name), value)
        socket.connect(address)
        return socket

    def listen(self, socket, handler):
        self.poller.register(socket, zmq.POLLIN)
        HANDLERS[socket] = handler

    def hello(self):
        contact = list(self.contacts())[len(self.handshakes)]
        address, local, headless = contact
        socket = self.socket(zmq.DEALER, address, ROUTING_ID=identity(self.rank), RCVHWM=0, SNDHWM=0)
        self.handshakes.append(socket)
        self.listen(socket, self.init)
        hello = encode({"status": "HELLO", "local": local, "headless": headless})
        for _ in range(self.options.hellos):
            socket.send(hello)
        say(rank=self.rank, event="hello", contact=len(self.handshakes) - 1)

    def init(self, frames):
        (payload,) = frames
        first = len(self.handshakes) == 1
        if self.options.scale_up and first:
            wrapped = decode_scale_up(payload)
            init, redundant = wrapped.engine_metadata, wrapped.num_redundant_experts
        else:
            init, redundant = decode_init(payload), None
        say(
            rank=self.rank,
            event="init",
            contact=len(self.handshakes) - 1,
            addresses=msgspec.to_builtins(init.addresses),
            parallel_config=init.parallel_config,
            keys=list(decode(payload)),
            redundant=redundant,
        )
        if first:
            self.addresses = init.addresses
        else:
            self.addresses.inputs, self.addresses.outputs = init.addresses.inputs, init.addresses.outputs
        if len(self.handshakes) < len(list(self.contacts())):
            return self.hello()
        self.after(self.options.load_ms, self.join)

    def join(self):
        """Loaded: connect to everybody, first frames, and wait for the coordinator (4.2, 5.2)."""
        a = self.addresses
        if a.coordinator_input:
            self.subscriber = self.socket(zmq.XSUB, a.coordinator_input)
            self.subscriber.send(b"\x01")
            self.listen(self.subscriber, self.coordinated)
        if a.coordinator_output:
            self.reporter = self.socket(zmq.PUSH, a.coordinator_output, linger=4000, SNDHWM=0)
        for address in a.inputs:
            dealer = self.socket(zmq.DEALER, address, ROUTING_ID=identity(self.rank), RCVHWM=0, SNDHWM=0)
            dealer.send(self.first_frame())
            self.inputs.append(dealer)
            self.listen(dealer, self.request)
        for address in a.outputs:
            self.outputs.append(self.socket(zmq.PUSH, address, linger=4000, SNDHWM=0))
        if not a.coordinator_input:
            self.ready()

    def first_frame(self):
        o = self.options
        if o.generation == "0.12":
            return b""
        return encode(
            ReadyResponse(
                max_model_len=2048,
                num_gpu_blocks=o.blocks or 0,
                block_size=16,
                dp_stats_address=self.addresses.frontend_stats_publish_address,
                dtype="bfloat16",
                vllm_version=o.generation,
                world_size=1,
                data_parallel_size=o.size,
            )
        )

    def ready(self):
        """The front-end beside it first, then the head: contexts unwind in reverse (2.3)."""
        o = self.options
        for socket, (_, local, headless) in reversed(list(zip(self.handshakes, self.contacts()))):
            message = {"status": "READY", "local": local, "headless": headless}
            if o.generation != "newest":
                message["num_gpu_blocks"] = o.blocks
                message["dp_stats_address"] = self.addresses.frontend_stats_publish_address
            if o.hash:
                message["parallel_config_hash"] = o.hash
            if o.coord_store_port is not None:
                message["coord_store_port"] = o.coord_store_port
                message["num_redundant_experts"] = 0
            socket.send(encode(message))
        self.joined = True
        say(rank=self.rank, event="ready")

    # ---- coordinator -----------------------------------------------------------------------------------------

    def coordinated(self, frames):
        if frames == [b"READY"]:
            if not self.joined:
                self.ready()
            return
        kind, payload = frames
        assert kind == START_DP_WAVE, frames
        wave, exclude = decode(payload)
        say(rank=self.rank, event="start_dp_wave", wave=wave, exclude=exclude if not isinstance(exclude, bytes) else exclude.hex())
        if self.paused or exclude == self.rank or wave < self.wave:
            return
        self.wave = wave
        self.run()

    def run(self):
        if self.running or self.paused:
            return
        self.running = True
        if self.rank == 0 and self.options.generation == "newest":
            self.report(start_wave=self.wave)

    def report(self, **fields):
        """To the coordinator; without one, to the own front-end."""
        message = encode(EngineCoreOutputs(engine_index=self.rank, timestamp=time.monotonic(), **fields))
        if self.reporter:
            self.reporter.send(message)
        elif self.outputs:
            self.outputs[0].send(message)

    def stats(self, running=None, waiting=0, step=None, wave=None, kv=0.0):
        self.steps += 1
        self.report(
            scheduler_stats=SchedulerStats(
                num_running_reqs=len(self.requests) if running is None else running,
                num_waiting_reqs=waiting,
                step_counter=self.steps if step is None else step,
                current_wave=self.wave if wave is None else wave,
                kv_cache_usage=kv,
            )
        )

    # ---- requests --------------------------------------------------------------------------------------------

    def send(self, client, **fields):
        message = EngineCoreOutputs(engine_index=self.rank, timestamp=time.monotonic(), **fields)
        self.outputs[client].send_multipart([encode(message)])

    def request(self, frames):
        kind, *rest = frames
        if kind == ADD:
            self.add(decode_request(rest[0]), len(rest) - 1)
        elif kind == ABORT:
            ids = decode(rest[0])
            self.requests -= set(ids)
            say(rank=self.rank, event="abort", ids=ids)
        elif kind == UTILITY:
            self.utility(*decode(rest[0]))
        else:
            raise ValueError(f"request type {kind!r}")

    def add(self, request, aux):
        say(rank=self.rank, event="add", id=request.request_id, wave=request.current_wave, aux=aux)
        self.requests.add(request.request_id)
        if request.current_wave > self.wave:
            self.wave = request.current_wave
        elif request.current_wave < self.wave and not self.running and not self.paused:
            self.report(start_wave=self.wave)
        self.run()
        self.stats()
        self.after(self.options.request_ms, lambda: self.finish(request))

    def finish(self, request):
        if self.paused:
            return self.after(self.options.request_ms, lambda: self.finish(request))
        if request.request_id not in self.requests:
            return
        self.requests.discard(request.request_id)
        output = EngineCoreOutput(request.request_id, [1, 2], finish_reason=0)
        self.send(request.client_index, outputs=[output], finished_requests={request.request_id})
        self.stats()

    def utility(self, client, call_id, method, args):
        say(rank=self.rank, event="utility", method=method, args=args, call=str(call_id))
        if method in self.options.ignore:
            return
        try:
            if method not in UTILITIES:
                raise AttributeError(f"'EngineCoreProc' object has no attribute '{method}'")
            value = getattr(self, method)(*args)
            reply = UtilityOutput(call_id, None, UtilityResult(None, value))
        except Exception as error:
            reply = UtilityOutput(call_id, f"Call to {method} method failed: {error}")
        for _ in range(self.options.replies):
            self.send(client, utility_output=reply)

    def pause_scheduler(self, mode, clear_cache):
        if mode not in ("abort", "wait", "keep"):
            raise ValueError(f"Invalid pause mode: {mode}")
        if mode == "abort":
            self.requests.clear()
        self.paused = True

    def resume_scheduler(self):
        self.paused = False
        if self.requests:
            self.run()

    def is_scheduler_paused(self):
        return self.paused

    def reinitialize_distributed(self, request):
        request = msgspec.convert(request, ReconfigureDistributedRequest)
        if self.prepared is not None:
            raise RuntimeError("Elastic EP reconfiguration is already active")
        self.prepared = request
        return f"eep_ready/{self.rank}"

    def commit_prepared_elastic_ep(self):
        if self.prepared is None:
            raise RuntimeError("No prepared Elastic EP reconfiguration is ready")
        self.prepared = None
        self.notify("RECONFIGURE_FINISHED")

    # ---- unasked ---------------------------------------------------------------------------------------------

    def notify(self, type):
        value = UtilityResult(None, (type, self.rank))
        self.send(0, utility_output=UtilityOutput(-1, None, value))

    def status(self, status):
        value = UtilityResult(None, {"id": self.rank, "status": status})
        self.send(0, utility_output=UtilityOutput(-2, None, value))

    def dead(self):
        for output in self.outputs:
            output.send(b"ENGINE_CORE_DEAD")

    def raw(self, to, hex):
        socket = {"output": lambda: self.outputs[0], "report": lambda: self.reporter, "input": lambda: self.inputs[0]}[to]()
        socket.send_multipart([bytes.fromhex(part) for part in hex.split(",")])


UTILITIES = {
    "pause_scheduler",
    "resume_scheduler",
    "is_scheduler_paused",
    "reinitialize_distributed",
    "commit_prepared_elastic_ep",
}
HANDLERS = {}


class Clock:
    """Things to do later, in order."""

    def __init__(self):
        self.queue, self.counter = [], itertools.count()

    def after(self, ms, action):
        heapq.heappush(self.queue, (time.monotonic() + ms / 1000, next(self.counter), action))

    def due(self):
        while self.queue and self.queue[0][0] <= time.monotonic():
            heapq.heappop(self.queue)[2]()

    def wait_ms(self, most):
        if not self.queue:
            return most
        return max(0, min(most, int((self.queue[0][0] - time.monotonic()) * 1000) + 1))


def command(line, engines):
    order = json.loads(line)
    do, rank = order.pop("do"), order.pop("rank", None)
    if do == "stop":
        sys.exit(0)
    for engine in engines:
        if rank is None or engine.rank == rank:
            if do in ("wave_complete", "start_wave"):
                engine.report(**{do: order["wave"]})
            else:
                getattr(engine, do)(**order)


def ranks_of(text):
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", required=True, help="such as 0,2 or 0-63")
    parser.add_argument("--handshake", required=True)
    parser.add_argument("--client-handshake")
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--generation", choices=["0.12", "mid", "newest"], default="newest")
    parser.add_argument("--size", type=int, default=1)
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--hash")
    parser.add_argument("--coord-store-port", type=int)
    parser.add_argument("--scale-up", action="store_true", help="expect the wrapped INIT")
    parser.add_argument("--boot-ms", type=int, default=0)
    parser.add_argument("--load-ms", type=int, default=20)
    parser.add_argument("--request-ms", type=int, default=30)
    parser.add_argument("--hellos", type=int, default=1, help="how often HELLO is said")
    parser.add_argument("--replies", type=int, default=1, help="how often a utility is answered")
    parser.add_argument("--ignore", action="append", default=[], help="a utility that is never answered")
    options = parser.parse_args()

    context, poller, clock = zmq.Context(), zmq.Poller(), Clock()
    context.set(zmq.MAX_SOCKETS, 8192)
    engines = [Engine(rank, options, context, poller, clock.after) for rank in ranks_of(options.ranks)]
    group = Group(engines)
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    pending = b""
    while True:
        clock.due()
        for source, _ in poller.poll(clock.wait_ms(10)):
            if source == sys.stdin.fileno():
                chunk = os.read(source, 65536)
                if not chunk:
                    sys.exit(0)
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    command(line, engines)
                continue
            for _ in range(100):
                try:
                    frames = source.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                HANDLERS[source](frames)
        group.step()


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        say(event="error", text=f"{type(error).__name__}: {error}")
        raise
