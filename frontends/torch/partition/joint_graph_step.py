"""Plan, rewrite, export, prove and split a joint graph, so that its step needs less memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any

import torch
from functorch.compile import default_partition
from xdsl.dialects.builtin import ModuleOp

from ....analysis.step.order import functions_of
from ....analysis.step.views import value_bytes
from ....driver.verification.verified import NotProved
from ....mlir_io.printer import print_module
from ....proof.prove import prove
from ..fx.exporter import write_joint
from ..fx.halves import Halves
from ..fx.importer import is_backward, read_joint, written_placeholders
from ..program_order.module_peaks import Peak
from .rewritten_step import RewrittenStep

_KEYWORDS = frozenset(signature(default_partition).parameters)


@dataclass(frozen=True)
class JointStep:
    """A joint graph, with the data that planning and splitting need.

    Attributes:
        module: The imported graph.
        joint: The graph of AOTAutograd.
        inputs: The example inputs that AOTAutograd passes to the partitioner.
        num_fwd_outputs: The number of results of the forward pass.
        keywords: The partitioner's other keywords. They depend on the version of PyTorch.
        for_inductor: Whether Inductor compiles the step.
        smallest_rewrites: The rewrites with the lowest peak that `smallest_rewrite` (`budget_rewrites.py`) has found,
            by options.
    """

    module: ModuleOp
    joint: torch.fx.GraphModule
    inputs: Any
    num_fwd_outputs: int
    keywords: dict[str, Any]
    for_inductor: bool = False
    smallest_rewrites: dict[str, RewrittenStep] = field(default_factory=dict[str, RewrittenStep], repr=False)

    @cached_property
    def peak(self) -> Peak:
        """The peak of the plain step in program order."""
        return Peak.of(self.module)

    @cached_property
    def has_backward(self) -> bool:
        """Whether the backward pass has any operations."""
        arguments = self.joint.graph.find_nodes(op="placeholder")
        tangents = {node for node in arguments if node.name.startswith("tangents")}
        return any(
            node.op == "call_function" and (is_backward(node) or not tangents.isdisjoint(node.all_input_nodes))
            for node in self.joint.graph.nodes
        )

    @cached_property
    def tangent_bytes(self) -> int:
        """The bytes of the results' gradients. They are live during the whole backward pass."""
        (function,) = functions_of(self.module)
        arguments = zip(function.args, self.joint.graph.find_nodes(op="placeholder"), strict=True)
        return sum(value_bytes(argument) for argument, node in arguments if node.name.startswith("tangents"))

    @cached_property
    def text(self) -> str:
        """The imported graph as MLIR with locations, whose module paths determine the segments."""
        return print_module(self.module, debuginfo=True)

    def split(self, rewritten: RewrittenStep) -> Halves:
        """Export a rewritten step, prove the exported graph equal to the joint graph, and split it.

        Raises `NotProved`, and `Unsupported` for an operation that FX cannot represent.
        """
        graph = write_joint(rewritten.result.module, self.joint, self.for_inductor, views_again=True)
        proof = prove(self.module, read_joint(graph, self.num_fwd_outputs))
        if not proof.proved:
            raise NotProved(proof, f"the exported graph is not proved equal to the original: {proof.reason}")
        keywords = _for_graph(self.keywords, graph)
        return default_partition(graph, self.inputs, num_fwd_outputs=self.num_fwd_outputs, **keywords)

    @property
    def overwrites(self) -> bool:
        """Whether the step overwrites any of its arguments."""
        return bool(written_placeholders(self.joint.graph))


def _for_graph(settings: dict[str, Any], graph: torch.fx.GraphModule) -> dict[str, Any]:
    """Return the keywords for the default partitioner, with nodes of the new graph in place of the old graph's nodes.

    The result leaves out keywords that only Inductor's partitioner accepts.
    """
    keywords = {name: value for name, value in settings.items() if name in _KEYWORDS}
    nodes = keywords.get("static_lifetime_input_nodes")
    if not nodes:
        return keywords
    by_name = {node.name: node for node in graph.graph.find_nodes(op="placeholder")}
    return keywords | {"static_lifetime_input_nodes": type(nodes)(by_name[node.name] for node in nodes)}
