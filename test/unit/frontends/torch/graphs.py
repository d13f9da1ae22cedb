"""Joint graphs of the steps, as AOTAutograd hands them to a partitioner."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from recompute import RecomputeOptions, rewrite
from recompute.proof.prove import prove
from recompute.test.unit.frontends.torch.steps import made, torch

from functorch.compile import aot_module, default_partition, nop  # isort: skip
from recompute.frontends.torch.fx import unsupported  # isort: skip
from recompute.frontends.torch.fx.exporter import write_joint  # isort: skip
from recompute.frontends.torch.fx.importer import ORIGIN, read_joint  # isort: skip

LEAST = RecomputeOptions(budget="min", target="none", stagger=False, proof=False)


@cache
def joint(name: str) -> tuple[Any, int]:
    """Return the joint graph of a step, and the number of its forward outputs."""
    captured = list[tuple[Any, int]]()

    def partition(graph: Any, inputs: Any, *, num_fwd_outputs: int, **keywords: Any) -> Any:
        captured.append((graph, num_fwd_outputs))
        return default_partition(graph, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)

    model, args = made(name)
    aot_module(model, fw_compiler=nop, bw_compiler=nop, partition_fn=partition)(*args)
    ((graph, outputs),) = captured
    assert isinstance(graph, torch.fx.GraphModule)
    return graph, outputs


def described(node: Any) -> tuple[Any, ...]:
    """Return a description of a node without its metadata."""
    return node.op, node.name, node.target, str(node.args), str(node.kwargs)


def same_nodes(graph: Any, other: Any) -> bool:
    """Return whether two graphs have the same nodes in the same order; elements of tuples may be taken at another
    place."""
    return sorted(map(described, graph.graph.nodes)) == sorted(map(described, other.graph.nodes)) and [
        described(node) for node in graph.graph.nodes if "getitem" not in node.name
    ] == [described(node) for node in other.graph.nodes if "getitem" not in node.name]


@cache
def exported(name: str) -> tuple[Any, Any, int]:
    """Return the imported step, and the graph of its rewrite for the least peak."""
    graph, outputs = joint(name)
    module = read_joint(graph, outputs)
    return module, write_joint(rewrite(module, LEAST).module, graph), outputs


def copies_in(graph: Any, part: str) -> Iterator[Any]:
    return (node for node in graph.graph.nodes if ORIGIN in node.meta and part in str(node.args) + str(node.target))


def is_proved(module: Any, graph: Any, outputs: int) -> bool:
    with suppress(unsupported.Unsupported):
        return prove(module, read_joint(graph, outputs)).proved
    return False


def cloned(graph: Any) -> Any:
    """Return a graph with nodes of its own, which a test may change."""
    fresh = torch.fx.Graph()
    fresh.output(fresh.graph_copy(graph.graph, {})).meta = dict(graph.graph.output_node().meta)
    return torch.fx.GraphModule(graph, fresh)
