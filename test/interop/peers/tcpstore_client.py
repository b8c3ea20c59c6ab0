"""A real TCPStore client, doing every operation: `tcpstore_client.py PORT libuv|legacy`.

Prints one JSON object: what each operation answered, or the name of the exception that it raised.
"""

import json
import sys
import threading
import time
from datetime import timedelta

from torch.distributed import PrefixStore, TCPStore

port = int(sys.argv[1])
libuv = sys.argv[2] == "libuv"
report = {}


def connect(seconds=20.0):
    return TCPStore(
        "127.0.0.1",
        port,
        is_master=False,
        wait_for_workers=False,
        use_libuv=libuv,
        timeout=timedelta(seconds=seconds),
    )


def shown(value):
    if isinstance(value, bytes):
        return value.decode("latin1")
    if isinstance(value, list):
        return [shown(each) for each in value]
    return value


def do(name, call):
    try:
        report[name] = shown(call())
    except Exception as error:  # noqa: BLE001: what it is, is the answer
        report[name] = type(error).__name__


def later(call, delay=0.15):
    def run():
        time.sleep(delay)
        call()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def woken(name, keys, call):
    """Waits for keys that another client brings about."""
    thread = later(call)
    do(name, lambda: store.wait(keys, timedelta(seconds=2)))
    thread.join()


store, other = connect(), connect()
short = timedelta(milliseconds=150)

do("set", lambda: store.set("k", "value"))
do("get", lambda: store.get("k"))
every = "".join(map(chr, range(1, 2048)))
do("set_any_text", lambda: store.set("текст/ключ", every))
do("get_any_text", lambda: store.get("текст/ключ") == every.encode())
do("set_empty", lambda: store.set("", ""))
do("get_empty", lambda: store.get(""))
do("set_many_megabytes", lambda: store.set("large", "x" * (8 * 1024 * 1024)))
do("get_many_megabytes", lambda: len(store.get("large")))
do("long_key", lambda: store.set("l" * 8191, "v"))
do("check_long_key", lambda: store.check(["l" * 8191]))
do("cas_lie", lambda: store.compare_set("cas", "expected", "new"))
do("cas_create", lambda: store.compare_set("cas", "", "new"))
do("cas_other", lambda: store.compare_set("cas", "old", "newer"))
do("cas_swap", lambda: store.compare_set("cas", "new", "newer"))
do("add", lambda: store.add("n", 5))
do("add_negative", lambda: store.add("n", -63))
do("add_read", lambda: store.get("n"))
do("add_large", lambda: store.add("big", 2**62))
do("add_wraps", lambda: [store.add("big", 2**62 - 1), store.add("big", 1)])
do("check_all", lambda: store.check(["k", "n", "cas"]))
do("check_some", lambda: store.check(["k", "missing"]))
do("check_none", lambda: store.check([]))
do("wait_present", lambda: store.wait(["k", "n"]))
woken("wait_set", ["w1", "w2"], lambda: [other.set("w1", "1"), other.add("w2", 1)])
woken("wait_append", ["w3"], lambda: other.append("w3", "1"))
woken("wait_multi_set", ["w4", "w5"], lambda: other.multi_set(["w4", "w5"], ["1", "2"]))
woken("wait_compare_set", ["w6"], lambda: other.compare_set("w6", "", "1"))
do("wait_timeout", lambda: store.wait(["never"], short))
do("get_timeout", lambda: connect(1.0).get("never"))
do("usable_after_timeout", lambda: store.get("k"))
do("append", lambda: [store.append("a", "abc"), store.append("a", "def")])
do("append_read", lambda: store.get("a"))
do("multi_set", lambda: store.multi_set(["m1", "m2", "m3"], ["1", "", "333"]))
do("multi_get", lambda: store.multi_get(["m3", "m1", "m2"]))
do("delete", lambda: [store.delete_key("k"), store.delete_key("k")])
do("num_keys", lambda: store.num_keys())
do("list_keys", lambda: sorted(key[:20] for key in store.list_keys()))
do("has_extended_api", lambda: store.has_extended_api())
do("clone", lambda: store.clone().get("n"))
queue_store, store = store, connect()  # A legacy server closes the connection of who asks for a queue.
do("queue_push", lambda: [store.queue_push("q", "one"), store.queue_push("q", "two")])
do("queue_len", lambda: [store.queue_len("q"), store.queue_len("none")])
do("queue_check", lambda: store.check(["q"]))
do("queue_pop", lambda: [store.queue_pop("q"), store.queue_pop("q", False)])
do("queue_empty", lambda: store.queue_pop("q", False))
if libuv:
    pusher = later(lambda: other.queue_push("q", "late"))
    do("queue_pop_later", lambda: store.queue_pop("q"))
    pusher.join()
arrival = later(lambda: other.barrier("b", 2, timedelta(seconds=2)))
do("barrier", lambda: store.barrier("b", 2, timedelta(seconds=2)))
arrival.join()
do("barrier_again", lambda: store.barrier("b", 2, short))
do("barrier_timeout", lambda: store.barrier("b3", 3, short))
prefix = PrefixStore("inner", PrefixStore("outer", store))
do("prefix", lambda: [prefix.set("k", "v"), prefix.get("k"), store.get("outer/inner/k")])
do("prefix_add", lambda: [prefix.add("n", 2), prefix.check(["n"]), prefix.delete_key("n")])
do("prefix_list", lambda: sorted(prefix.list_keys()))
do("prefix_barrier", lambda: prefix.barrier("b", 1))
do("workers", lambda: TCPStore("127.0.0.1", port, 2, False, timedelta(seconds=5), True) and None)
do("word", lambda: store.set("word", "abc"))
do("add_to_word", lambda: store.clone().add("word", 1))
too_long = store.clone()
do("key_too_long", lambda: [too_long.set("l" * 8192, "v"), too_long.num_keys() > 0])
print(json.dumps(report), flush=True)
