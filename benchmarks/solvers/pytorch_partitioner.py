"""Measure the time of PyTorch's own partitioner on a 24-layer GPT, the network in
`benchmarks/solvers/graphs/gpt24L.json.gz`.

    python benchmarks/solvers/pytorch_partitioner.py 0.9 0.5      # needs torch, and imports nothing of this project

For each activation memory budget, the script prints one line of JSON: the budget, the number of nodes of the joint
graph, and the seconds in the partitioner. The command `python -m recompute.benchmarks.solvers.planner times --python
PYTHON` runs the script alternately with the solvers.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
import torch._functorch.config as config
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses.fake_tensor import FakeTensorMode

LAYERS, BATCH, LENGTH, WIDTH, HEADS, WORDS = 24, 8, 256, 512, 8, 4096


def block(x: Any, w: Any) -> Any:
    """Apply a Transformer block."""
    y = torch.nn.functional.layer_norm(x, (WIDTH,), w["a"], w["b"])
    q, k, v = (y @ w["qkv"]).split(WIDTH, dim=2)
    q, k, v = (t.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for t in (q, k, v))
    scores = (q @ k.transpose(-2, -1)) / (WIDTH / HEADS) ** 0.5
    scores = scores.masked_fill(w["mask"] == 0, float("-inf"))
    mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)
    x = x + mixed @ w["out"]
    y = torch.nn.functional.layer_norm(x, (WIDTH,), w["c"], w["d"])
    return x + torch.nn.functional.gelu(y @ w["up"]) @ w["down"]


def loss(tokens: Any, targets: Any, mask: Any, table: Any, *weights: Any) -> Any:
    """Compute the loss of the GPT."""
    x = table[tokens]
    names = ("a", "b", "qkv", "out", "c", "d", "up", "down")
    for layer in range(LAYERS):
        some = weights[layer * len(names) : (layer + 1) * len(names)]
        x = block(x, dict(zip(names, some, strict=True)) | {"mask": mask})
    return torch.nn.functional.cross_entropy((x @ table.T).view(-1, WORDS), targets.view(-1))


def arguments() -> list[Any]:
    """Return the GPT's inputs and weights, as fake tensors without data."""

    def weight(*shape: int) -> Any:
        return torch.empty(*shape).requires_grad_()

    tokens, targets = torch.zeros(2, BATCH, LENGTH, dtype=torch.int64)
    layer = [(WIDTH,), (WIDTH,), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH,), (WIDTH,), (WIDTH, 4 * WIDTH)]
    shapes = [*layer, (4 * WIDTH, WIDTH)] * LAYERS
    return [tokens, targets, torch.ones(LENGTH, LENGTH), weight(WORDS, WIDTH), *(weight(*shape) for shape in shapes)]


def time_partitioner(budget: float) -> tuple[int, float]:
    """Partition the GPT, and return the number of nodes of the joint graph and the seconds in the partitioner."""
    result = list[tuple[int, float]]()

    def timed(joint: Any, inputs: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        parts = min_cut_rematerialization_partition(joint, inputs, **options)
        result.append((len(joint.graph.nodes), time.perf_counter() - begin))
        return parts

    def as_it_is(gm: Any, example_inputs: Any) -> Any:
        return gm

    with config.patch(activation_memory_budget=budget), FakeTensorMode(allow_non_fake_inputs=True):
        aot_function(loss, as_it_is, as_it_is, partition_fn=timed)(*arguments())
    return result[0]


def main() -> None:
    """Print one line of JSON for each budget on the command line."""
    for budget in map(float, sys.argv[1:]):
        nodes, seconds = time_partitioner(budget)
        print(json.dumps({"budget": budget, "nodes": nodes, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
