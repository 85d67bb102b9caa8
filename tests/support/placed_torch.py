"""A torch module whose parameters are `DTensor`s, compiled in processes that hold parts of them.

python -m tests.support.placed_torch fake OUT            one process of four, whose others are not there
python -m tests.support.placed_torch gloo OUT RANK PORT  one of two that talk
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import gcomp


def module() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 8))


def _fake(out: Path) -> None:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    placed = parallelize_module(module(), mesh["model"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    program = gcomp.import_model(placed, torch.ones(8, 16))
    both = module()
    both[0].weight = torch.nn.Parameter(distribute_tensor(both[0].weight.data, mesh, [Shard(0), Shard(0)]))
    both[2].weight = torch.nn.Parameter(distribute_tensor(both[2].weight.data, mesh, [Shard(1), Replicate()]))
    out.write_text(program.text() + "\n" + gcomp.import_model(both, torch.ones(8, 16)).text(), "utf-8")


def _gloo(out: Path, rank: int, port: int) -> None:
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("model",))
    placed = parallelize_module(module(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = torch.linspace(-1, 1, 128).reshape(8, 16)
    theirs = placed(x).detach().numpy()
    model = gcomp.compile(placed, x, target="xla:cpu")
    partitioned: str = model._executor.partitioned({})  # pyright: ignore
    np.savez(out, ours=np.asarray(model(x.numpy())), theirs=theirs, text=np.array(partitioned))
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "fake":
        _fake(Path(sys.argv[2]))
    else:
        _gloo(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
