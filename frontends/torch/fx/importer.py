"""Import an FX joint graph as an xDSL module. docs/torch_internals.md describes the encoding.

In an exported graph, the metadata of a copy names the original node, and the imported copy gets that name. An exported
graph can therefore be reimported and compared with the original graph.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import torch
from torch._higher_order_ops.effects import with_effects
from torch._ops import HigherOrderOperator, OpOverload
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from xdsl.dialects.builtin import FunctionType, IntegerAttr, IntegerType, ModuleOp, Signedness, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects.names import Names
from ....dialects.torch import (
    ARGS,
    DRAW,
    EFFECT,
    FLOPS,
    GET_ATTR,
    NODE,
    OF,
    PREFIX,
    READ,
    SEEDED,
    STORED,
    operation_class,
)
from ....support.phase import Phase
from .arguments import text_of
from .fake_values import tensors_in
from .graph_marks import marks_of
from .layout_views import flattened_argument, restored_argument
from .node_locations import location_of
from .product_flops import flops_of
from .schemas import STATE_BYTES, draws, is_size_function, qualified_name, written_arguments
from .tensor_types import stored_bytes, type_of
from .unsupported import Unsupported

ORIGIN = "recompute_origin"
"""The metadata key under which a copied node stores the name of its original."""
KEPT = "recompute_kept"
"""The metadata key of a clone that preserves an argument for the backward pass before the step overwrites it."""
_TAG = "partitioner_tag"
"""The metadata key under which AOTAutograd stores whether a node belongs to the forward or the backward pass."""
Results: TypeAlias = "SSAValue | tuple[Results, ...]"
_PRIMAL, _GRADIENT = StringAttr(Phase.PRIMAL.value), StringAttr(Phase.GRADIENT.value)
STEP = "step"
"""The name of the function that a joint graph becomes."""


def is_backward(node: torch.fx.Node) -> bool:
    """Return whether the partitioner's tag assigns the node to the backward pass."""
    return node.meta.get(_TAG) in ("is_backward", "must_be_in_backward")


def read_joint(joint: torch.fx.GraphModule, num_fwd_outputs: int, marked: bool = False) -> ModuleOp:
    """Import a joint graph as a module. `marked`: whether to import the user's marks on single operations.

    Raises `Unsupported` for a node that the encoding cannot represent.
    """
    reader = _Reader(_directions(joint.graph, num_fwd_outputs), written_placeholders(joint.graph), marked)
    nodes = list(joint.graph.nodes)
    first_call = next(index for index, node in enumerate(nodes) if node.op != "placeholder")
    for node in nodes[:first_call]:
        reader.read(node)
    reader.read_written()
    for node in nodes[first_call:]:
        reader.read(node)
    return reader.module()


def _directions(graph: torch.fx.Graph, num_fwd_outputs: int) -> Mapping[torch.fx.Node, bool]:
    """Return for each call whether it belongs to the backward pass, as determined by the partitioner's tag or the
    call's position.

    PyTorch does not tag the backward pass of a `torch.autograd.Function`. A call without a tag belongs to the backward
    pass if it is after the last operation that a forward output needs, unless it writes to an argument.
    """
    calls = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    outputs = graph.output_node().args[0]
    needed = {node for node in cast(Sequence[Any], outputs)[:num_fwd_outputs] if isinstance(node, torch.fx.Node)}
    last = max((index for index, node in enumerate(calls) if node in needed), default=-1)
    is_tagged = any(_TAG in node.meta for node in calls)

    def is_after(index: int, node: torch.fx.Node) -> bool:
        return index > last and not (is_tagged and _is_mutable(node))

    return {
        node: is_backward(node) if node.meta.get(_TAG) is not None else is_after(index, node)
        for index, node in enumerate(calls)
    }


def _is_mutable(node: torch.fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def written_placeholders(graph: torch.fx.Graph) -> frozenset[torch.fx.Node]:
    """Return the arguments that the step overwrites, or that its caller overwrites with results."""
    written = set[torch.fx.Node]()
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.target, OpOverload):
            positions = written_arguments(node.target)
            written.update(node.args[at] for at in positions if at < len(node.args))  # pyright: ignore[reportArgumentType]
    for described in graph.output_node().meta.get("desc") or ():
        source = getattr(described, "mutated_input", None)
        written.update(
            node
            for node in graph.find_nodes(op="placeholder")
            if source is not None and node.meta.get("desc") == source
        )
    return frozenset(node for node in written if node.op == "placeholder")


def kept_argument(node: torch.fx.Node) -> torch.fx.Node | None:
    """Return the argument that a clone preserves for the backward pass, or None if the node is not such a clone.

    The exporter inserts such clones for arguments that the step overwrites, with the metadata key `KEPT`.
    """
    if not node.meta.get(KEPT) or node.target is not torch.ops.aten.clone.default or is_backward(node):
        return None
    (argument,) = node.args
    return argument if isinstance(argument, torch.fx.Node) and argument.op == "placeholder" else None


@dataclass(frozen=True)
class _NewOperation:
    """An operation to add.

    Attributes:
        node: The node that the operation encodes.
        name: The operation's name.
        operands: The operands.
        types: The result types.
        attributes: The attributes, except for the attributes that every operation has.
        is_late: Whether the operation belongs to the backward pass even if its node belongs to the forward pass.
    """

    node: torch.fx.Node
    name: str
    operands: Sequence[SSAValue]
    types: Sequence[Attribute]
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    is_late: bool = False


@dataclass(frozen=True)
class _Call:
    """A call to import.

    Attributes:
        node: The node of the call.
        target: The called function.
        args: The positional arguments.
        value: The fake result.
        before: The operands to insert before the arguments: the state of a random operation, or the token of an ordered
            effect.
        prefix: The prefix of the operation's name.
    """

    node: torch.fx.Node
    target: Any
    args: Sequence[Any]
    value: Any
    before: tuple[SSAValue, ...] = ()
    prefix: str = PREFIX


@dataclass
class _Reader:
    """Builds the function node by node.

    Attributes:
        backward: Maps each call to whether it belongs to the backward pass.
        written: The arguments that the step overwrites.
        marked: Whether the user's marks on single operations are imported.
        block: The body of the function.
        values: Maps each node read so far to its result, or to a tuple of results.
        reads: Maps each overwritten argument to its value before the write.
        late_reads: Maps each overwritten argument to the value that the backward pass reads.
    """

    backward: Mapping[torch.fx.Node, bool]
    written: frozenset[torch.fx.Node]
    marked: bool
    block: Block = field(default_factory=Block)
    values: dict[torch.fx.Node, Results] = field(default_factory=dict[torch.fx.Node, Results])
    reads: dict[torch.fx.Node, SSAValue] = field(default_factory=dict[torch.fx.Node, SSAValue])
    late_reads: dict[torch.fx.Node, SSAValue] = field(default_factory=dict[torch.fx.Node, SSAValue])

    def read(self, node: torch.fx.Node) -> None:
        if node.op == "placeholder":
            self._placeholder(node)
        elif node.op == "output":
            self._output(node)
        elif (argument := kept_argument(node)) in self.written:
            self.values[node] = self.reads[argument]
        elif (argument := restored_argument(node)) is not None and argument not in self.written:
            self.values[node] = self.values[argument]
        elif flattened_argument(node) is not None and all(map(restored_argument, node.users)):
            return  # Skip the flat view, since only views that restore the argument read it.
        elif node.op == "get_attr":
            types, named = [type_of(node.meta.get("val"), node)], {OF: StringAttr(str(node.target))}
            (self.values[node],) = self._add(_NewOperation(node, GET_ATTR, (), types, named))
        elif node.target is operator.getitem:
            self._item(node)
        elif node.target is run_and_save_rng_state:
            target, *args = node.args
            self.values[node] = self._random_operation(node, cast(OpOverload, target), args, node.meta["val"][1])
        elif node.target is run_with_rng_state:
            state, target, *args = node.args
            drawn = self._single(state, node)
            self.values[node] = self._add_call(
                _Call(node=node, target=target, args=args, value=node.meta["val"], before=(drawn,), prefix=SEEDED)
            )
        elif node.target is with_effects:
            self._effect(node)
        elif isinstance(node.target, OpOverload) or is_size_function(node.target):
            self._call(node, node.target)
        elif isinstance(node.target, HigherOrderOperator):
            raise Unsupported(node, "it is a higher-order operation, whose graphs cannot be imported")
        else:
            raise Unsupported(node, "the node's target is not an operator of the PyTorch dispatcher")

    def read_written(self) -> None:
        """Add a read of each argument that the step overwrites, before the write."""
        for argument, value in list(self.values.items()):
            if argument in self.written and isinstance(value, SSAValue):
                (self.reads[argument],) = self._add(_NewOperation(argument, READ, [value], [value.type]))

    def module(self) -> ModuleOp:
        """Return the module that contains the function. Call this after all nodes have been read."""
        last = self.block.last_op
        assert last is not None, "module() must be called after the output node has been read"
        types = FunctionType.from_lists(
            [value.type for value in self.block.args], [value.type for value in last.operands]
        )
        return ModuleOp([FuncOp(STEP, types, Region(self.block))])

    def _placeholder(self, node: torch.fx.Node) -> None:
        value = self.block.insert_arg(type_of(node.meta.get("val"), node), len(self.block.args))
        value.name_hint = _hint(node.name)
        self.values[node] = value

    def _output(self, node: torch.fx.Node) -> None:
        outputs = cast(Sequence[Any], node.args[0])
        returned = [self._single(output, node) for output in outputs if isinstance(output, torch.fx.Node)]
        self.block.add_op(ReturnOp(*returned))

    def _item(self, node: torch.fx.Node) -> None:
        source, index = node.args
        results = self.values[cast(torch.fx.Node, source)]
        if not isinstance(results, tuple) or not isinstance(index, int):
            raise Unsupported(node, "the node takes an element of a value that is not a tuple")
        self.values[node] = results[index]

    def _effect(self, node: torch.fx.Node) -> None:
        """Add a call with an ordered effect, which takes a token and returns a new token before its results."""
        token, target, *args = node.args
        if not isinstance(target, OpOverload):
            raise Unsupported(
                node, f"{target} has ordered effects, but it is not an operator of the PyTorch dispatcher"
            )
        before = (self._single(token, node),)
        self.values[node] = self._add_call(
            _Call(node=node, target=target, args=args, value=node.meta["val"], before=before, prefix=EFFECT)
        )

    def _call(self, node: torch.fx.Node, target: Any) -> None:
        value = node.meta.get("val")
        if isinstance(target, OpOverload) and draws(target):
            _, results = self._random_operation(node, target, node.args, value)
        else:
            results = self._add_call(_Call(node, target, node.args, value))
        self.values[node] = results

    def _random_operation(
        self, node: torch.fx.Node, target: OpOverload, args: Sequence[Any], value: Any
    ) -> tuple[SSAValue, Results]:
        """Add a draw of a generator state and the operation that reads it. Return the state and the results."""
        named: dict[str, Attribute] = {
            OF: StringAttr(qualified_name(target)),
            ARGS: StringAttr(text_of(node, args, node.kwargs, lambda _: 0)),
        }
        (state,) = self._add(_NewOperation(node, DRAW, (), [_state_type(value, node)], named))
        return state, self._add_call(
            _Call(node=node, target=target, args=args, value=value, before=(state,), prefix=SEEDED)
        )

    def _add_call(self, call: _Call) -> Results:
        """Add the operation that represents a call. Return its results."""
        node, value = call.node, call.value
        operands = list(call.before)
        indices = dict[torch.fx.Node, int]()

        def operand(read: torch.fx.Node) -> int:
            if read not in indices:
                indices[read] = len(operands)
                operands.append(self._current(read, node))
            return indices[read]

        attributes: dict[str, Attribute] = {ARGS: StringAttr(text_of(node, call.args, node.kwargs, operand))}
        is_counted = isinstance(call.target, OpOverload) and call.prefix != EFFECT
        if is_counted and (flops := flops_of(call.target, call.args, node.kwargs, value)) is not None:
            attributes[FLOPS] = IntegerAttr(flops, 64)
        if (stored := stored_bytes(value, node)) is not None:
            attributes[STORED] = IntegerAttr(stored, 64)
        parts = tuple(value) if _is_tuple(value) else (value,)
        types = [type_of(part, node) for part in parts]
        name = call.prefix + qualified_name(call.target)
        results = self._add(_NewOperation(node, name, operands, types, attributes))
        return tuple(results) if _is_tuple(value) else results[0]

    def _current(self, read: torch.fx.Node, node: torch.fx.Node) -> SSAValue:
        """Return the value that `node` gets when it reads the node `read`.

        If the step overwrites the argument `read`, the forward pass reads the value before the write, and the backward
        pass reads the value after the write.
        """
        value = self._single(read, node)
        if read not in self.written or self._writes(node, read):
            return value
        if not self.backward.get(node, False):
            return self.reads[read]
        if read not in self.late_reads:
            (self.late_reads[read],) = self._add(_NewOperation(read, READ, [value], [value.type], is_late=True))
        return self.late_reads[read]

    @staticmethod
    def _writes(node: torch.fx.Node, argument: torch.fx.Node) -> bool:
        target = node.target
        return isinstance(target, OpOverload) and any(node.args[at] is argument for at in written_arguments(target))

    def _single(self, read: Any, node: torch.fx.Node) -> SSAValue:
        value = self.values[read]
        if isinstance(value, tuple):
            raise Unsupported(
                node, f"it reads the whole tuple that {read} returns, but only reads of single elements are supported"
            )
        return value

    def _add(self, new: _NewOperation) -> list[SSAValue]:
        """Add an operation. Return its results."""
        node, name = new.node, new.name
        backward = new.is_late or self.backward.get(node, False)
        attributes = {**new.attributes, NODE: StringAttr(node.meta.get(ORIGIN, node.name))}
        if name != GET_ATTR:
            attributes[Names.PHASE] = _GRADIENT if backward else _PRIMAL
        if self.marked and not backward and name not in (READ, DRAW, GET_ATTR):
            attributes |= marks_of(node)
        op = operation_class(name).create(operands=new.operands, result_types=new.types, attributes=attributes)
        op.location = location_of(node, backward)
        self.block.add_op(op)
        if op.results:
            op.results[0].name_hint = _hint(node.name)
        return list(op.results)


def _hint(name: str) -> str | None:
    return name if SSAValue.is_valid_name(name) else None


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple | list)


def _state_type(value: Any, node: torch.fx.Node) -> Attribute:
    """Return the type of the generator state on the device of a random operation's result."""
    device = next(tensors_in(value)).device.type
    if device not in STATE_BYTES:
        raise Unsupported(node, f"the size of the generator state of the device '{device}' is unknown")
    return TensorType(IntegerType(8, Signedness.UNSIGNED), [STATE_BYTES[device]])
