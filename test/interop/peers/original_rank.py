"""One old rank of an external-load-balancer cluster, as the original's front-end behaves (wire specification, 7.5 and 7.7), over
torch's TCPStore and msgspec. Its engine answers at once. Written from the specification.

usage: original_rank.py SOCKET

Importing torch takes seconds, so this process does it once, and forks a rank for each connection to the unix socket. A rank is told
`RANK CURRENT NEW CONTROL_PORT|0 LIMIT_SECONDS [FAULT]` in the first line. It answers with the control store's port, scales for each further
line, and answers with how it ended as JSON. Only the first time goes wrong. The end of standard input ends this process and every rank.

Faults: `silent`, `reinitialize` (its engine cannot prepare), `after-vote` (its engine cannot pause), `commit` (its engine cannot switch), `resume` (its
engine does not resume, after everything is written), `stranger` (its scale-up handshake server met one), `late-notification` (its
engine's word about an earlier operation arrives during this one, and then its engine is silent), and deaths: `dies-before-prepared`,
`dies-between-writes` (the first and the second of its records), `dies-before-vote`, `dies-after-vote`, `dies-half-completed` (`completed` is in the control
store only).
"""
import json
import os
import select
import signal
import socket
import sys
import time
import uuid

import msgspec
from torch.distributed import TCPStore

PREFIX = "elastic_ep/external"


class ReconfigureDistributedRequest(msgspec.Struct):
    new_data_parallel_size: int
    new_data_parallel_rank: int
    new_data_parallel_rank_local: int
    new_data_parallel_master_ip: str
    new_data_parallel_master_port: int
    new_data_parallel_master_port_list: list[int]
    coord_store_port: int


rank = current = new = 0
limit = 0.0
fault = ""
scale_up = False
epoch = None
acted = None
control = None
reconfig = None


def key(*parts):
    return "/".join([PREFIX, *map(str, parts)])


def read(store, name):
    return store.get(name) if store.check([name]) else None


def failed_with():
    text = read(control, key(epoch, "error"))
    return None if text is None else text.decode()


def wait_until(look, what):
    """Polls with the original's back-off; the time limit is looked at after a failed check only."""
    since, delay = time.monotonic(), 0.1
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() - since > limit:
            raise TimeoutError(what)
        time.sleep(delay)
        delay = min(delay * 2, 0.8)


def all_there(names, what, failing):
    def look():
        error = failed_with()
        if error is not None:
            raise RuntimeError(failing + error)
        return reconfig.check(names)

    wait_until(look, what)


def publish():
    """Rank 0: control first, then the operation's own store, then what the others wait for."""
    global epoch, reconfig
    running = read(control, key("current_epoch"))
    if running is not None:
        e = running.decode()
        if not control.check([key(e, "error")]) and not control.check([key(e, "completed")]):
            raise RuntimeError("Another external Elastic EP scaling operation is already active.")
    reconfig = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=False)
    epoch = uuid.uuid4().hex
    record = msgspec.msgpack.encode(
        ReconfigureDistributedRequest(new, -1, -1, "127.0.0.1", 29999, [1, 2, 3, 4], reconfig.port)
    )
    for store in (control, reconfig):
        store.set(key(epoch, "bootstrap"), record)
        store.set(key(epoch, "phase"), "preparing")
        store.set(key("current_epoch"), epoch)
        if fault == "dies-between-writes":
            os._exit(9)
    control.set(key(epoch, "num_redundant_experts"), "0")
    control.set(key(epoch, "prepared"), "1")
    if fault == "stranger":
        raise RuntimeError("Received scale-up handshake from unexpected dp rank 7")


def follow():
    global epoch, reconfig
    previous = acted
    running = read(control, key("current_epoch"))
    if running is not None and control.check([key(running.decode(), "completed")]):
        previous = running

    def look():
        global epoch
        now = read(control, key("current_epoch"))
        if now is None or now == previous:
            return None
        e = now.decode()
        error = read(control, key(e, "error"))
        if error is not None:
            epoch = e
            raise RuntimeError(error.decode())
        record = read(control, key(e, "bootstrap"))
        prepared = control.check([key(e, "prepared")])
        if record is None or not prepared:
            return None
        bootstrap = msgspec.msgpack.decode(record, type=ReconfigureDistributedRequest)
        if bootstrap.new_data_parallel_size != new:
            raise RuntimeError(
                "A different external Elastic EP scaling operation is already in progress for "
                f"target dp size {bootstrap.new_data_parallel_size}."
            )
        return e, bootstrap

    epoch, bootstrap = wait_until(
        look, "Timed out waiting for rank 0 to publish external Elastic EP bootstrap metadata."
    )
    control.get(key(epoch, "num_redundant_experts"))
    reconfig = TCPStore(
        "127.0.0.1", bootstrap.coord_store_port, is_master=False, wait_for_workers=False
    )


def prepare():
    publish() if rank == 0 else follow()
    reconfig.set(key("current_epoch"), epoch)
    reconfig.set(key(epoch, "phase"), "preparing")
    if fault == "late-notification":
        # Its handler takes the epoch of now, not that of the operation which the word is about.
        reconfig.set(key(epoch, "old_rank_finished", rank), "1")
    if scale_up or rank < new:
        if fault == "reinitialize":
            raise RuntimeError("Call to reinitialize_distributed method failed: on demand")
        reconfig.set(f"eep_ready/{rank}", "1")
        if rank == 0:
            for joining in range(current, new):
                reconfig.set(f"eep_ready/{joining}", "1")
    all_there(
        [f"eep_ready/{r}" for r in range(new)],
        "Timed out waiting for external Elastic EP ranks to prepare.",
        "External Elastic EP scaling failed while waiting for ranks to prepare: ",
    )


def commit():
    if fault == "dies-before-vote":
        os._exit(9)
    reconfig.set(key(epoch, "commit_ready", rank), "1")
    failing = "External Elastic EP scaling failed: "
    all_there(
        [key(epoch, "commit_ready", r) for r in range(current)],
        "Timed out waiting for external Elastic EP drains.",
        failing,
    )
    if fault == "dies-after-vote":
        os._exit(9)
    if fault == "after-vote":
        raise RuntimeError("Call to pause_scheduler method failed: on demand")
    for store in (control, reconfig):
        store.set(key(epoch, "phase"), "committing")
    if fault == "late-notification":
        time.sleep(3600)
    if fault == "commit":
        raise RuntimeError("Call to commit_prepared_elastic_ep method failed: on demand")
    remains = scale_up or rank < new
    own = key(epoch, "old_rank_finished" if remains else "shutdown_complete", rank)
    reconfig.set(own, "1")
    all_there([own], "Timed out waiting for local external Elastic EP reconfiguration.", failing)
    if rank == 0:
        ends = [
            key(epoch, "old_rank_finished" if scale_up or r < new else "shutdown_complete", r)
            for r in range(current)
        ]
        all_there(
            ends, "Timed out waiting for all old ranks to finish external Elastic EP scaling.", failing
        )
        for store in (control, reconfig):
            store.set(key(epoch, "completed"), "1")
            if fault == "dies-half-completed":
                time.sleep(1)  # whoever looks has seen it
                os._exit(9)
        for store in (control, reconfig):
            store.set(key(epoch, "phase"), "completed")
    elif remains:
        all_there([key(epoch, "completed")], "Timed out waiting for rank 0.", failing)
    if fault == "resume":
        raise RuntimeError("Call to resume_scheduler method failed: on demand")


def scale():
    if fault == "dies-before-prepared":
        os._exit(9)
    if fault == "silent":
        time.sleep(3600)
    try:
        prepare()
        commit()
        return {"outcome": "completed"}
    except Exception as error:  # as the original: every failing rank publishes by itself
        text = str(error) or type(error).__name__
        if epoch is not None:
            for store in (control, reconfig):
                try:
                    store.set(key(epoch, "error"), text)
                    store.set(key(epoch, "phase"), "failed")
                except Exception:
                    pass
        return {"outcome": "failed", "error": text}


def live(connection):
    """One rank, from its first line to the end of its connection."""
    global rank, current, new, limit, fault, scale_up, control, epoch, acted
    lines = connection.makefile("rw")
    first, *rest = lines.readline().split()
    rank, current, new, port = (int(a) for a in [first, *rest[:3]])
    limit = float(rest[3])
    fault = rest[4] if len(rest) > 4 else ""
    scale_up = new > current
    if port == 0:
        control = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, use_libuv=False)
    else:
        control = TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    print(control.port, file=lines, flush=True)
    for _ in lines:
        epoch = None
        print(json.dumps(scale()), file=lines, flush=True)
        # A failure is remembered too, so that the next attempt does not trip over it. The stores live as long as this process.
        acted, fault = None if epoch is None else epoch.encode(), ""


os.setpgrp()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(64)
print("ready", flush=True)
while True:
    readable, _, _ = select.select([listener, sys.stdin], [], [])
    if sys.stdin in readable:
        os.killpg(0, signal.SIGKILL)
    connection, _ = listener.accept()
    if os.fork() == 0:
        listener.close()
        try:
            live(connection)
        finally:
            os._exit(0)
    connection.close()
