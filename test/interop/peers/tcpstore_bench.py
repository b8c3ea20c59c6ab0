"""Measures TCPStore servers under torch's own client, in turns: `tcpstore_bench.py '{"name": port, ...}' ROUNDS`.

Every row is measured in rounds, and in each round on every server, in changing order, so that a slow moment of the
machine hits all of them. Prints one JSON object: row -> server -> microseconds per operation, one number a round.
"""

import json
import multiprocessing
import sys
import time
from datetime import timedelta

from torch.distributed import TCPStore

servers = json.loads(sys.argv[1])
rounds = int(sys.argv[2])
fork = multiprocessing.get_context("fork")
CLIENTS = 8
IDLE = 1000
WARM_WAITS = 3000


def connect(port):
    return TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)


def turns():
    """Every server in every round, each time another one first."""
    names = list(servers)
    for i in range(rounds):
        shift = i % len(names)
        for name in names[shift:] + names[:shift]:
            yield name


def timed(operation, count):
    start = time.perf_counter()
    for _ in range(count):
        operation()
    return (time.perf_counter() - start) / max(1, count) * 1e6


def measure(row, operations, count, warm):
    """Rounds of `count` operations on each server, after `warm` of them: a server may compile as it runs."""
    for operation in operations.values():
        timed(operation, warm)
    taken = {name: [] for name in servers}
    for name in turns():
        taken[name].append(timed(operations[name], count))
    report[row] = taken


def pair_on(store):
    def pair():
        store.set("k", "value")
        store.get("k")

    return pair


def worker(barrier, rounds_each, count):
    """One of the eight: works when the others do, on the server whose turn it is."""
    pairs = {name: pair_on(connect(port)) for name, port in servers.items()}
    for name in list(servers) * rounds_each + list(turns()):
        barrier.wait()
        timed(pairs[name], count)
        barrier.wait()


def eight(count):
    barrier = fork.Barrier(CLIENTS + 1)
    workers = [fork.Process(target=worker, args=(barrier, 1, count)) for _ in range(CLIENTS)]
    for each in workers:
        each.start()
    taken = {name: [] for name in servers}
    for i, name in enumerate(list(servers) + list(turns())):
        barrier.wait()
        start = time.perf_counter()
        barrier.wait()
        if i >= len(servers):
            taken[name].append((time.perf_counter() - start) / (count * CLIENTS) * 1e6)
    for each in workers:
        each.join()
    report["eight clients, set + get"] = taken


def echo(port, count):
    """Answers every key `ping/<i>` with `pong/<i>`."""
    store = connect(port)
    for i in range(count):
        store.wait([f"ping/{i}"], timedelta(seconds=60))
        store.set(f"pong/{i}", "")


def waits(count):
    total = WARM_WAITS + count * rounds
    echoes = [fork.Process(target=echo, args=(port, total)) for port in servers.values()]
    for each in echoes:
        each.start()
    stores = {name: connect(port) for name, port in servers.items()}
    done = dict.fromkeys(servers, 0)

    def there_and_back(name):
        i = done[name]
        done[name] += 1
        stores[name].set(f"ping/{i}", "")
        stores[name].wait([f"pong/{i}"], timedelta(seconds=60))

    measure("a wait that another client satisfies", {
        name: lambda name=name: there_and_back(name) for name in servers
    }, count, WARM_WAITS)
    # There and back are two waits.
    for values in report["a wait that another client satisfies"].values():
        values[:] = [value / 2 for value in values]
    for each in echoes:
        each.join()


report = {}
stores = {name: connect(port) for name, port in servers.items()}
keys = [f"key/{i}" for i in range(64)]
for store in stores.values():
    store.multi_set(keys, ["v"] * 64)
measure("set + get", {name: pair_on(store) for name, store in stores.items()}, 300, 3000)
measure("add", {name: lambda s=s: s.add("n", 1) for name, s in stores.items()}, 600, 6000)
measure("check of 64 keys", {name: lambda s=s: s.check(keys) for name, s in stores.items()}, 200, 3000)
waits(100)
eight(100)

for port in servers.values():  # These are closed again at once.
    timed(lambda: connect(port), 1500)
idle = {name: [] for name in servers}
measure("a connect", {
    name: lambda n=name, p=port: idle[n].append(connect(p)) for name, port in servers.items()
}, IDLE // rounds, 0)
for name, port in servers.items():
    while len(idle[name]) < IDLE:
        idle[name].append(connect(port))
measure(
    "set + get, one among 1,000 idle",
    {name: pair_on(store) for name, store in stores.items()},
    150,
    150,
)
print(json.dumps(report), flush=True)
