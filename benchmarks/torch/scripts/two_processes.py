"""Scripts with two processes that share parameters, gradients, or values of the forward pass."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

from recompute.benchmarks.torch.scripts.script import Compile, Results, batches, final, mlp, script, train

Worker = Callable[[int, Compile], Results]


def worker(rank: int, body: Worker, compile: Compile, folder: str) -> None:
    """Run one of two processes, which writes its results and its reports on graphs to a file."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/init", rank=rank, world_size=2)
    results = body(rank, compile)
    graphs = [replace(graph, module=None, rewritten=None) for graph in getattr(compile, "reports", list)()]
    torch.save((results, graphs), Path(folder) / f"results{rank}")
    dist.barrier()
    dist.destroy_process_group()


def in_two_processes(body: Worker, compile: Compile) -> Results:
    """Run `body` in two processes, and return the results of both. The rank is part of the names of the results."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(worker, (body, compile, folder), nprocs=2)
        outcomes = [torch.load(Path(folder) / f"results{rank}", weights_only=False) for rank in range(2)]
    for _, graphs in outcomes:
        getattr(compile, "of_workers", []).extend(graphs)
    return {f"rank {rank} {name}": tensor for rank, (part, _) in enumerate(outcomes) for name, tensor in part.items()}


def train_data_parallel(rank: int, compile: Compile) -> Results:
    """Train a network whose gradients are reduced over two processes (DDP)."""
    torch.manual_seed(73)
    model = mlp()
    step = compile(nn.parallel.DistributedDataParallel(model))
    torch.manual_seed(rank)
    return final(model, train(model, lambda x: step(x).square().mean(), batches(3, 64, 32)))


@script
def data_parallel(compile: Compile) -> Results:
    """Train with DistributedDataParallel over two processes."""
    return in_two_processes(train_data_parallel, compile)


def train_accumulated(rank: int, compile: Compile) -> Results:
    """Train with gradients of two batches, which are accumulated before they are reduced over two processes."""
    torch.manual_seed(82)

    class AccumulatingNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.aside = mlp(depth=3), nn.Linear(32, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.net(x)
            return y.square().mean() + (self.aside(y.detach()) - y).abs().mean()

    model = AccumulatingNet()
    parallel = nn.parallel.DistributedDataParallel(model)
    step = compile(parallel)
    torch.manual_seed(rank)
    losses, optimizer = [], torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        optimizer.zero_grad()
        with parallel.no_sync():
            losses.append(step(torch.randn(32, 32)))
            losses[-1].backward()
        losses.append(step(torch.randn(32, 32)))
        losses[-1].backward()
        optimizer.step()
    return final(model, losses)


@script
def accumulated_data_parallel(compile: Compile) -> Results:
    """Train with DistributedDataParallel over two processes, and accumulate gradients with `no_sync`."""
    return in_two_processes(train_accumulated, compile)


def train_sharded(rank: int, compile: Compile) -> Results:
    """Train a model whose parameters are sharded over two processes (FSDP)."""
    torch.manual_seed(95)
    model = nn.Sequential(*(mlp(depth=1) for _ in range(3)))
    mesh = dist.init_device_mesh("cpu", (2,))
    for block in model:
        fully_shard(block, mesh=mesh)
        block.forward = compile(block.forward)
    fully_shard(model, mesh=mesh)
    torch.manual_seed(rank)
    losses = train(model, lambda x: model(x).square().mean(), batches(3, 64, 32))
    whole: dict[str, Any] = {}
    parameters: dict[str, Any] = dict(model.named_parameters())
    for name, parameter in parameters.items():
        assert parameter.grad is not None
        whole |= {f"parameter {name}": parameter.detach().full_tensor(), f"grad {name}": parameter.grad.full_tensor()}
    return {
        **{f"loss {index}": loss for index, loss in enumerate(losses)},
        **whole,
        "random state": torch.get_rng_state(),
    }


@script
def sharded_parallel(compile: Compile) -> Results:
    """Train with FSDP2 over two processes, with each sharded block's forward pass compiled."""
    return in_two_processes(train_sharded, compile)


def train_contrastive(rank: int, compile: Compile) -> Results:
    """Train with a contrastive loss over the batches of two processes."""
    torch.manual_seed(96)
    model = mlp()

    def loss(x: torch.Tensor) -> torch.Tensor:
        mine = F.normalize(model(x), dim=-1)
        every = collectives.all_gather_single_autograd(mine, 0, dist.group.WORLD)
        target = torch.arange(len(mine)) + rank * len(mine)
        mean = collectives.all_reduce(mine.detach().mean(0), "sum", dist.group.WORLD) / 2
        return F.cross_entropy(10 * (mine - mean) @ every.T, target)

    torch.manual_seed(rank)
    return final(model, train(model, compile(loss), batches(3, 64, 32)))


@script
def gathered_negatives(compile: Compile) -> Results:
    """Train with a contrastive loss over two processes' outputs, gathered inside the compiled function."""
    return in_two_processes(train_contrastive, compile)
