"""Two collectives that vLLM's CPU communicator lacks, so that a mixture of experts with several data-parallel ranks can take a step on a CPU.

vLLM finds this as a general plugin when this directory is on PYTHONPATH. It changes what workers compute with, and nothing of what engines say to
a front-end or a coordinator, which is what these tests are about. It does nothing where the communicator has the collectives, or is another.
"""

import torch
import torch.distributed as dist


def all_gatherv(self, input_, dim=0, sizes=None):
    if isinstance(input_, list):
        return [all_gatherv(self, one, dim, sizes) for one in input_]
    assert dim == 0, "only along the first dimension"
    sizes = sizes or [input_.shape[0]] * self.world_size
    # gloo gathers equal shapes only: everybody sends as much as the longest has.
    longest = max(sizes)
    sent = torch.zeros((longest, *input_.shape[1:]), dtype=input_.dtype)
    sent[: input_.shape[0]] = input_
    parts = [torch.empty_like(sent) for _ in sizes]
    dist.all_gather(parts, sent, group=self.cpu_group)
    return torch.cat([part[:size] for part, size in zip(parts, sizes)])


def reduce_scatterv(self, input_, dim=-1, sizes=None):
    if dim < 0:
        dim += input_.dim()
    assert dim == 0, "only along the first dimension"
    # gloo has no reduce for every type: sum in float32.
    total = input_.to(torch.float32)
    dist.all_reduce(total, group=self.cpu_group)
    sizes = sizes or [input_.shape[0] // self.world_size] * self.world_size
    begin = sum(sizes[: self.rank_in_group])
    return total[begin : begin + sizes[self.rank_in_group]].to(input_.dtype).contiguous()


def register() -> None:
    from vllm.distributed.device_communicators.base_device_communicator import (
        DeviceCommunicatorBase,
    )
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

    for name, method in (("all_gatherv", all_gatherv), ("reduce_scatterv", reduce_scatterv)):
        missing = getattr(DeviceCommunicatorBase, name, None)
        if missing is not None and getattr(CpuCommunicator, name) is missing:
            setattr(CpuCommunicator, name, method)
