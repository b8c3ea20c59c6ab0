"""Many engines in one process: each connects, says HELLO, and says READY when INIT comes.

`engines.py ADDRESS COUNT WHEN HELLO READY`, the messages in hex. It speaks ZMTP 3.1 itself, as a DEALER with the rank as its
identity, so that it needs the least it can of the cores that the coordinator runs on: with a ZeroMQ socket for each engine,
every start-up would be as fast as this process. It says "here", waits for a line, plays, and ends when its input does. WHEN they
connect is `before` the line or `after` it.
"""

import os
import select
import socket
import sys

address, count, when, hello, ready = sys.argv[1:]
host, port = address.removeprefix("tcp://").rsplit(":", 1)

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + b"\0" + bytes(31)
COMMAND = 4


def frame(body: bytes, flags: int = 0) -> bytes:
    return bytes([flags, len(body)]) + body


def property_(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


def metadata(rank: int) -> bytes:
    identity = property_(b"Identity", rank.to_bytes(2, "little"))
    return frame(b"\x05READY" + property_(b"Socket-Type", b"DEALER") + identity, COMMAND)


HELLO = frame(bytes.fromhex(hello))
READY = frame(bytes.fromhex(ready))
poller = select.epoll()


class Engine:
    def __init__(self, rank: int) -> None:
        self.greeting = GREETING + metadata(rank)
        self.heard = b""
        self.play = self.greet
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.socket.connect_ex((host, int(port)))
        poller.register(self.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def greet(self) -> None:
        """Connected."""
        self.socket.send(self.greeting)
        poller.modify(self.socket.fileno(), select.EPOLLIN)
        self.play = self.meet

    def meet(self) -> None:
        """The other side's greeting and metadata."""
        self.heard += self.socket.recv(4096)
        if len(self.heard) < 66 or len(self.heard) < 66 + self.heard[65]:
            return
        met.append(self)
        self.play = self.answer
        if when == "after":
            self.socket.send(HELLO)

    def answer(self) -> None:
        """INIT, perhaps after a PING."""
        heard = self.socket.recv(4096)
        while heard and heard[0] == COMMAND:
            heard = heard[2 + heard[1] :]
        if not heard:
            return
        self.socket.send(READY)
        self.play = self.rest

    def rest(self) -> None:
        self.socket.recv(4096)


engines: dict[int, Engine] = {}
met: list[Engine] = []


def connect() -> None:
    for rank in range(int(count)):
        engine = Engine(rank)
        engines[engine.socket.fileno()] = engine


def turn() -> bool:
    """Plays what has happened; false when nobody waits for us any more."""
    for fd, _ in poller.poll():
        if fd == 0 and os.read(0, 64) == b"":
            return False
        if fd != 0:
            engines[fd].play()
    return True


if when == "before":
    connect()
    while len(met) < int(count):
        turn()
print("here", flush=True)
os.read(0, 64)
poller.register(0, select.EPOLLIN)
if when == "before":
    for engine in met:
        engine.socket.send(HELLO)
else:
    connect()
while turn():
    pass
