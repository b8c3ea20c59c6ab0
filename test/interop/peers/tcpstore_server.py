"""A real TCPStore server: `tcpstore_server.py libuv|legacy`. Prints its port; ends when its input does."""

import sys

from torch.distributed import TCPStore

store = TCPStore(
    "127.0.0.1",
    0,
    is_master=True,
    wait_for_workers=False,
    use_libuv=sys.argv[1] == "libuv",
)
print(store.port, flush=True)
sys.stdin.read()
