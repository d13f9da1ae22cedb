"""Export a rewritten xDSL module as an FX joint graph, with the metadata of the imported graph.

Copies get the metadata of their originals, and the tag of the backward pass. A random operation whose state a copy
reads becomes `run_and_save_rng_state`, and the copy becomes `run_with_rng_state`. An argument that the step overwrites
is cloned if the backward pass reads its old value.

Two kinds of values are saved in a different form:

- A view of a forward value that the backward pass reads. With `views_again`, the backward pass recreates the view from
  the value. Without `views_again`, the view itself is saved: autograd then holds its storage until the backward pass
  ends, and Inductor may save the view as a copy, because it chooses the layouts of values.
- An image or a weight of a convolution that both passes read. With `for_inductor`, the backward pass reads it through a
  one-dimensional view. Such a view has a single layout:

      flat = aten.view(weight, [numel])       in the forward pass
      again = aten.view(flat, [o, i, h, w])   in the backward pass, whose operations read it
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._higher_order_ops.effects import with_effects
from torch._ops import OpOverload
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ....analysis.step.marks import is_copy
from ....analysis.step.order import functions_of, single_block
from ....analysis.step.views import value_bytes
from ....dialects import aten
from ....dialects.names import Names
from ....dialects.torch import DRAW, EFFECT, GET_ATTR, PREFIX, READ, SEEDED, arguments_of, called_name, node_of
from ....support.operations import name_of
from ....support.phase import Phase
from .arguments import value_of
from .fake_values import tensors_in
from .importer import KEPT, ORIGIN, written_placeholders
from .layout_views import FLAT, is_flattened
from .schemas import STATE_BYTES, target_named
from .unsupported import Unsupported

_TAG, _BACKWARD, _ONLY_FORWARD = "partitioner_tag", "is_backward", "must_be_in_forward"
_CONVOLUTION = f"{PREFIX}aten.convolution.default"
_VIEWS = frozenset(f"{PREFIX}{name}" for name in aten.VIEWS.split())
_CHECKPOINT_KEYS = ("recompute", "ac_graph_id")
"""The metadata keys that make PyTorch's partitioners recompute or reorder nodes. The exporter drops them, since the
graph is final."""


def write_joint(
    module: ModuleOp, joint: torch.fx.GraphModule, for_inductor: bool = False, views_again: bool = False
) -> torch.fx.GraphModule:
    """Export a module as a joint graph.

    Args:
        module: The imported or rewritten module.
        joint: The graph that the module was imported from.
        for_inductor: Whether Inductor, which chooses layouts, compiles the graph.
        views_again: Whether the backward pass recreates views of forward values; implied by `for_inductor`.

    Raises:
        Unsupported: For an operation that FX cannot represent.
    """
    (function,) = functions_of(module)
    writer = _Writer(joint, for_inductor, views_again or for_inductor)
    block = single_block(function)
    originals = joint.graph.find_nodes(op="placeholder")
    for argument, node in zip(block.args, originals, strict=True):
        writer.nodes[argument] = writer.placeholder(node)
    if for_inductor and any(name_of(op) == _CONVOLUTION for op in block.ops):
        writer.flatten(block.args, written_placeholders(joint.graph))
    *operations, terminator = block.ops
    for op in operations:
        writer.write(op)
    writer.output(terminator)
    writer.graph.lint()
    return torch.fx.GraphModule(joint, writer.graph)


@dataclass(frozen=True)
class _NewNode:
    """A node to create: its target, its arguments, and its FX opcode."""

    target: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    op: str = "call_function"


@dataclass
class _Writer:
    """Builds the graph, operation by operation.

    Attributes:
        joint: The graph that the module was imported from.
        for_inductor: As in `write_joint`.
        views_again: As in `write_joint`.
        graph: The new graph.
        nodes: Maps each value written so far to the node that defines it.
        flat_views: Maps arguments to their one-dimensional views (`layout_views.py`).
        backward_nodes: Maps each value that the backward pass has read so far to the node that it reads for this value.
        pending_draw: The last draw of a generator state, until its random operation is written.
    """

    joint: torch.fx.GraphModule
    for_inductor: bool
    views_again: bool
    graph: torch.fx.Graph = field(default_factory=torch.fx.Graph)
    nodes: dict[SSAValue, torch.fx.Node] = field(default_factory=dict[SSAValue, torch.fx.Node])
    flat_views: dict[SSAValue, torch.fx.Node] = field(default_factory=dict[SSAValue, torch.fx.Node])
    backward_nodes: dict[SSAValue, torch.fx.Node] = field(default_factory=dict[SSAValue, torch.fx.Node])
    pending_draw: Operation | None = None

    def __post_init__(self) -> None:
        self.originals: dict[str, torch.fx.Node] = {node.name: node for node in self.joint.graph.nodes}
        self.item_nodes = {
            (node.args[0], node.args[1]): node
            for node in self.joint.graph.find_nodes(op="call_function", target=operator.getitem)
        }

    def placeholder(self, original: torch.fx.Node) -> torch.fx.Node:
        node = self.graph.create_node("placeholder", original.target, original.args, name=original.name)
        node.meta = _meta_of(original)
        return node

    def flatten(self, arguments: Sequence[SSAValue], written: frozenset[torch.fx.Node]) -> None:
        """Create one-dimensional views of the images and weights that both passes read and the step does not write."""
        names = {node.name for node in written}
        for argument in arguments:
            placeholder = self.nodes[argument]
            if _is_read_twice(argument) and is_flattened(placeholder) and placeholder.name not in names:
                shape = [placeholder.meta["val"].numel()]
                self.flat_views[argument] = self._view(placeholder, shape, f"{placeholder.name}_flat", "is_forward")

    def _view(self, source: torch.fx.Node, shape: list[int], name: str, tag: str) -> torch.fx.Node:
        node = self.graph.create_node("call_function", torch.ops.aten.view.default, (source, shape), name=name)
        value = source.meta["val"]
        with value.fake_mode:
            node.meta = {"val": value.view(shape), _TAG: tag, FLAT: True}
        return node

    def _read_by(self, op: Operation, operand: SSAValue) -> torch.fx.Node:
        """Return the node that an operation reads for an operand."""
        return self._in_backward(operand) if self.views_again and _is_backward(op) else self.nodes[operand]

    def _in_backward(self, value: SSAValue) -> torch.fx.Node:
        """Return the node that the backward pass reads for a value. Views of forward values are recreated in the
        backward pass."""
        if value not in self.backward_nodes:
            self.backward_nodes[value] = self._node_in_backward(value)
        return self.backward_nodes[value]

    def _node_in_backward(self, value: SSAValue) -> torch.fx.Node:
        if value in self.flat_views:
            argument = self.nodes[value]
            shape = list(argument.meta["val"].shape)
            name = f"{argument.name}_again"
            return self._view(self.flat_views[value], shape, name, _BACKWARD)
        if not isinstance(value, OpResult) or not _is_whole_view(value.op):
            return self.nodes[value]
        op = value.op
        args = tuple(
            value_of(argument, [self._in_backward(op.operands[0])]) for argument in arguments_of(op).positional
        )
        return self._create(_NewNode(target_named(called_name(op)), args), self._original(op), True)

    def write(self, op: Operation) -> None:
        match name_of(op):
            case name if name == READ:
                self._read(op)
            case name if name == DRAW:
                if self.pending_draw is not None:
                    raise Unsupported(node_of(op), "two random number generators advance at the same time")
                self.pending_draw = op
            case name if name == GET_ATTR:
                original = self._original(op)
                new = _NewNode(original.target, op="get_attr")
                self._define(op.results[0], self._create(new, original, is_copy(op)))
            case name if name.startswith(SEEDED):
                self._random_operation(op)
            case name if name.startswith(EFFECT):
                token, *operands = op.operands
                before = (self.nodes[token], target_named(called_name(op)))
                self._define_results(op, self._call(op, with_effects, operands, 1, before))
            case _:
                self._define_results(op, self._call(op, target_named(called_name(op)), op.operands))

    def output(self, terminator: Operation) -> None:
        """Write the output node, with the results at the positions of the original results."""
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
        node = self._create(_NewNode(torch.ops.aten.clone.default, (argument,)), argument, False)
        node.meta = _meta_of(argument) | {_TAG: "is_forward", KEPT: True}
        self._define(op.results[0], node)

    def _random_operation(self, op: Operation) -> None:
        """Write a random operation: a call that advances the generator, or a copy that starts from the same state."""
        target = target_named(called_name(op))
        state = op.operands[0]
        if (draw := self.pending_draw) is not None:
            if not isinstance(state, OpResult) or state.op is not draw or node_of(op) != node_of(draw):
                reason = "the random operation does not read the state of the torch.draw just before it"
                raise Unsupported(node_of(op), reason)
            self.pending_draw = None
            if state.has_one_use():
                self._define_results(op, self._call(op, target, op.operands[1:], 1))
            else:
                self._save_state(op, target, state)
        else:
            call = self._call(op, run_with_rng_state, op.operands[1:], 1, (self.nodes[state], target))
            self._define_results(op, call)

    def _save_state(self, op: Operation, target: OpOverload, state: SSAValue) -> None:
        call = self._call(op, run_and_save_rng_state, op.operands[1:], 1, (target,))
        value = call.meta["val"]
        saved = _state_like(value)
        call.meta["val"] = (saved, value)
        self._define(state, self._item(call, 0, saved))
        self._define_results(op, self._item(call, 1, value))

    def _call(
        self, op: Operation, target: Any, operands: Sequence[SSAValue], first: int = 0, before: tuple[Any, ...] = ()
    ) -> torch.fx.Node:
        """Write the call to an operation.

        `first`: the operand index of the first entry of `operands`. `before`: arguments to insert before these
        operands.
        """
        read: list[Any] = [None] * first + [self._read_by(op, operand) for operand in operands]
        arguments = arguments_of(op)
        args = (*before, *(value_of(argument, read) for argument in arguments.positional))
        kwargs = {name: value_of(argument, read) for name, argument in arguments.keywords}
        return self._create(_NewNode(target, args, kwargs), self._original(op), is_copy(op))

    def _define_results(self, op: Operation, call: torch.fx.Node) -> None:
        value = call.meta.get("val")
        if value is None and not _is_backward(op):
            # PyTorch's partitioner would repeat such a check in the backward pass, and save its operands.
            call.meta[_TAG] = _ONLY_FORWARD
        if not isinstance(value, tuple | list):
            self._define(op.results[0], call)
            return
        original = self._original(op)
        for index, result in enumerate(op.results):
            if result.first_use is not None:
                self._define(
                    result, self._item(call, index, value[index], self.item_nodes.get((original, index)), is_copy(op))
                )

    def _item(
        self, call: torch.fx.Node, index: int, value: Any, original: torch.fx.Node | None = None, copied: bool = False
    ) -> torch.fx.Node:
        """Write the node for one element of a call's result tuple. `original`: the element's node in the imported
        graph."""
        name = None if original is None else f"{original.name}_recomputed" if copied else original.name
        node = self.graph.create_node("call_function", operator.getitem, (call, index), name=name)
        node.meta = {**call.meta, "val": value}
        if original is not None:
            node.meta = {**_meta_of(original), _TAG: call.meta.get(_TAG), **_origin(original, copied)}
        return node

    def _create(self, new: _NewNode, original: torch.fx.Node, copied: bool) -> torch.fx.Node:
        name = f"{original.name}_recomputed" if copied else original.name
        node = self.graph.create_node(new.op, new.target, new.args, dict(new.kwargs), name=name)
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
    return is_copy(op) or (isinstance(phase, StringAttr) and phase.data != Phase.PRIMAL)


def _is_whole_view(op: Operation) -> bool:
    """Return whether a forward operation is a view with at least as many bytes as its operand.

    A view of an argument that the step later overwrites is excluded, since the backward pass would read the overwritten
    value.
    """
    if _is_backward(op) or name_of(op) not in _VIEWS or len(op.operands) != 1 or len(op.results) != 1:
        return False
    (operand,), (result,) = op.operands, op.results
    is_read = isinstance(operand, OpResult) and name_of(operand.op) == READ
    return not is_read and not arguments_of(op).keywords and value_bytes(result) >= value_bytes(operand)


def _is_read_twice(argument: SSAValue) -> bool:
    """Return whether both passes read the argument."""
    return {_is_backward(use.operation) for use in argument.uses} == {True, False}


def _meta_of(node: torch.fx.Node) -> dict[str, Any]:
    return {key: value for key, value in node.meta.items() if key not in _CHECKPOINT_KEYS}


def _origin(original: torch.fx.Node, copied: bool) -> dict[str, str]:
    return {ORIGIN: original.meta.get(ORIGIN, original.name)} if copied or ORIGIN in original.meta else {}


def _state_like(value: Any) -> torch.Tensor:
    """Return a fake generator state for the device of a fake tensor."""
    first: Any = next(tensors_in(value))
    with first.fake_mode:
        return torch.empty(STATE_BYTES[first.device.type], dtype=torch.uint8, device="cpu")
