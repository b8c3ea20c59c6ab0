"""One process of a gloo group that meets on a given store: `tcpstore_gloo.py PORT RANK SIZE store|env`.

Does all_reduce, barrier, new_group, all_gather and a collective of a subgroup, and prints one JSON object.
"""

import json
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

port, rank, size = map(int, sys.argv[1:4])
limit = timedelta(seconds=60)
if sys.argv[4] == "store":
    store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=limit)
else:
    # An agent's store: no rank binds the port, all of them connect to it.
    os.environ.update(
        TORCHELASTIC_USE_AGENT_STORE="True",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    dist.init_process_group("gloo", rank=rank, world_size=size, timeout=limit)

ones = torch.full((1000,), float(rank + 1))
dist.all_reduce(ones)
dist.barrier()
parts = [torch.zeros(1) for _ in range(size)]
dist.all_gather(parts, torch.tensor([float(rank * 10)]))
pair = dist.new_group([0, 1])
two = torch.tensor([float(rank + 5)])
if rank < 2:
    dist.all_reduce(two, group=pair)
dist.monitored_barrier()
words = [None] * size
dist.all_gather_object(words, f"rank {rank}")
report = {
    "all_reduce": ones.unique().tolist(),
    "all_gather": [part.item() for part in parts],
    "new_group": two.item(),
    "objects": words,
}
dist.barrier()
dist.destroy_process_group()
print(json.dumps(report), flush=True)
