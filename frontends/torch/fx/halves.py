"""The two graphs of a partitioned step, and functions that list their nodes."""

from __future__ import annotations

import torch

Halves = tuple[torch.fx.GraphModule, torch.fx.GraphModule]
"""The forward graph and the backward graph."""


def placeholders_of(half: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """Return the placeholder nodes of a graph."""
    return list(half.graph.find_nodes(op="placeholder"))


def calls_of(half: torch.fx.GraphModule) -> list[torch.fx.Node]:
    """Return the nodes that call a function, in program order."""
    return [node for node in half.graph.nodes if node.op == "call_function"]
