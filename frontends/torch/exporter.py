"""Export a rewritten module: xDSL to an FX joint graph, with the metadata of the graph that was imported.

Copies get the metadata of their originals, and the tag of the backward pass. A random operation whose state a copy
reads becomes `run_and_save_rng_state`, the copy `run_with_rng_state`. An argument that the step overwrites is cloned if
the backward pass reads its old value.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._higher_order_ops.effects import with_effects
from torch._ops import OpOverload
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...analysis.step.marks import is_copy
from ...analysis.step.order import functions_of, single_block
from ...dialects.names import Names
from ...dialects.torch import DRAW, EFFECT, GET_ATTR, READ, SEEDED, arguments_of, called_name, node_of
from ...support.operations import name_of
from .arguments import value_of
from .importer import KEPT, ORIGIN
from .schemas import STATE_BYTES, target_named
from .unsupported import Unsupported

_TAG, _BACKWARD = "partitioner_tag", "is_backward"
_OF_CHECKPOINTS = ("recompute", "ac_graph_id")
"""Keys of the metadata by which PyTorch's partitioners recompute and reorder: the graph is final."""


def write_joint(module: ModuleOp, joint: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return the joint graph of a module. `joint`: the graph that the module was imported from.

    Raises `Unsupported` for an operation without a form in FX.
    """
    (function,) = functions_of(module)
    writer = _Writer(joint)
    block = single_block(function)
    for argument, node in zip(block.args, joint.graph.find_nodes(op="placeholder"), strict=True):
        writer.nodes[argument] = writer.placeholder(node)
    *operations, terminator = block.ops
    for op in operations:
        writer.write(op)
    writer.output(terminator)
    writer.graph.lint()
    return torch.fx.GraphModule(joint, writer.graph)


@dataclass
class _Writer:
    """Builds the graph, operation by operation."""

    joint: torch.fx.GraphModule
    graph: torch.fx.Graph = field(default_factory=torch.fx.Graph)
    nodes: dict[SSAValue, torch.fx.Node] = field(default_factory=dict[SSAValue, torch.fx.Node])
    running: Operation | None = None

    def __post_init__(self) -> None:
        self.originals: dict[str, torch.fx.Node] = {node.name: node for node in self.joint.graph.nodes}
        self.items = {
            (node.args[0], node.args[1]): node
            for node in self.joint.graph.find_nodes(op="call_function", target=operator.getitem)
        }

    def placeholder(self, original: torch.fx.Node) -> torch.fx.Node:
        node = self.graph.create_node("placeholder", original.target, original.args, name=original.name)
        node.meta = _meta_of(original)
        return node

    def write(self, op: Operation) -> None:
        match name_of(op):
            case name if name == READ:
                self._read(op)
            case name if name == DRAW:
                if self.running is not None:
                    raise Unsupported(node_of(op), "two random number generators advance at the same time")
                self.running = op
            case name if name == GET_ATTR:
                original = self._original(op)
                self._define(op.results[0], self._node("get_attr", original.target, (), {}, original, is_copy(op)))
            case name if name.startswith(SEEDED):
                self._seeded(op)
            case name if name.startswith(EFFECT):
                token, *operands = op.operands
                before = (self.nodes[token], target_named(called_name(op)))
                self._results(op, self._call(op, with_effects, operands, 1, before))
            case _:
                self._results(op, self._call(op, target_named(called_name(op)), op.operands))

    def output(self, terminator: Operation) -> None:
        """Write the output node: the results, in the places of those of the original."""
        original = self.joint.graph.output_node()
        results = iter(terminator.operands)
        outputs = [self.nodes[next(results)] if isinstance(old, torch.fx.Node) else old for old in original.args[0]]  # pyright: ignore
        node = self.graph.create_node("output", "output", (type(original.args[0])(outputs),))  # pyright: ignore
        node.meta = _meta_of(original)

    def _read(self, op: Operation) -> None:
        argument = self.nodes[op.operands[0]]
        if _is_backward(op) or not any(_is_backward(use.operation) for use in op.results[0].uses):
            self._define(op.results[0], argument)
            return
        node = self._node("call_function", torch.ops.aten.clone.default, (argument,), {}, argument, False)
        node.meta = _meta_of(argument) | {_TAG: "is_forward", KEPT: True}
        self._define(op.results[0], node)

    def _seeded(self, op: Operation) -> None:
        """Write a random operation: the call that advances the generator, or one that runs again from the same
        state."""
        target, state = target_named(called_name(op)), op.operands[0]
        if self.running is not None:
            if not isinstance(state, OpResult) or state.op is not self.running or node_of(op) != node_of(self.running):
                raise Unsupported(node_of(op), "the operation does not draw from the generator that advances before it")
            self.running = None
            if state.has_one_use():
                self._results(op, self._call(op, target, op.operands[1:], 1))
            else:
                self._save_state(op, target, state)
        else:
            call = self._call(op, run_with_rng_state, op.operands[1:], 1, (self.nodes[state], target))
            self._results(op, call)

    def _save_state(self, op: Operation, target: OpOverload, state: SSAValue) -> None:
        call = self._call(op, run_and_save_rng_state, op.operands[1:], 1, (target,))
        value = call.meta["val"]
        saved = _state_like(value)
        call.meta["val"] = (saved, value)
        self._define(state, self._item(call, 0, saved))
        self._results(op, self._item(call, 1, value))

    def _call(
        self, op: Operation, target: Any, operands: Sequence[SSAValue], first: int = 0, before: tuple[Any, ...] = ()
    ) -> torch.fx.Node:
        """Return the call of an operation. `first`: the number of the first of the operands; `before`: further
        arguments."""
        read: list[Any] = [None] * first + [self.nodes[operand] for operand in operands]
        arguments = arguments_of(op)
        args = (*before, *(value_of(argument, read) for argument in arguments.positional))
        kwargs = {name: value_of(argument, read) for name, argument in arguments.keywords}
        return self._node("call_function", target, args, kwargs, self._original(op), is_copy(op))

    def _results(self, op: Operation, call: torch.fx.Node) -> None:
        value = call.meta["val"]
        if not isinstance(value, tuple | list):
            self._define(op.results[0], call)
            return
        original = self._original(op)
        for index, result in enumerate(op.results):
            if result.first_use is not None:
                self._define(
                    result, self._item(call, index, value[index], self.items.get((original, index)), is_copy(op))
                )

    def _item(
        self, call: torch.fx.Node, index: int, value: Any, original: torch.fx.Node | None = None, copied: bool = False
    ) -> torch.fx.Node:
        """Return an element of the tuple that a call returns. `original`: the node for this element in the imported
        graph."""
        name = None if original is None else f"{original.name}_recomputed" if copied else original.name
        node = self.graph.create_node("call_function", operator.getitem, (call, index), name=name)
        node.meta = {**call.meta, "val": value}
        if original is not None:
            node.meta = {**_meta_of(original), _TAG: call.meta.get(_TAG), **_origin(original, copied)}
        return node

    def _node(
        self, kind: str, target: Any, args: Any, kwargs: Any, original: torch.fx.Node, copied: bool
    ) -> torch.fx.Node:
        name = f"{original.name}_recomputed" if copied else original.name
        node = self.graph.create_node(kind, target, args, kwargs, name=name)
        node.meta = _meta_of(original) | _origin(original, copied)
        if copied:
            node.meta[_TAG] = _BACKWARD
        return node

    def _define(self, value: SSAValue, node: torch.fx.Node) -> None:
        self.nodes[value] = node

    def _original(self, op: Operation) -> torch.fx.Node:
        return self.originals[node_of(op)]


def _is_backward(op: Operation) -> bool:
    phase = op.attributes.get(Names.PHASE)
    return is_copy(op) or (isinstance(phase, StringAttr) and phase.data != "primal")


def _meta_of(node: torch.fx.Node) -> dict[str, Any]:
    return {key: value for key, value in node.meta.items() if key not in _OF_CHECKPOINTS}


def _origin(original: torch.fx.Node, copied: bool) -> dict[str, str]:
    return {ORIGIN: original.meta.get(ORIGIN, original.name)} if copied or ORIGIN in original.meta else {}


def _state_like(value: Any) -> torch.Tensor:
    """Return a fake random state of the device of a fake tensor."""
    (first, *_) = _tensors(value)
    with first.fake_mode:
        return torch.empty(STATE_BYTES[first.device.type], dtype=torch.uint8, device="cpu")


def _tensors(value: Any) -> Iterator[Any]:
    for part in value if isinstance(value, tuple | list) else (value,):
        if isinstance(part, torch.Tensor):
            yield part
