"""Split an outlined per-device step into its forward and its backward body.

The gradient begins at the first operation that is marked as gradient, is a copy, or reads a cotangent. The forward
values that the gradient reads are passed as follows:

    an argument          becomes an operand of both bodies
    a constant           is cloned into both bodies
    any other value      becomes a residual

A residual passes from the forward body to the backward body on the same device, without communication:

    tensor<4x8xf32> on each of 2 × 3 devices        tensor<24x8xf32>, [{"a", "b"}, {}]

All manual axes shard the first dimension, as in JAX; a scalar becomes a row of one element.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.step.marks import is_copy
from ...analysis.step.order import read_values
from ...dialects.names import Names
from ...dialects.sdy.computations import ShardyReturnOp
from ...dialects.sdy.sharding_ops import axes_of_mesh
from ...dialects.stablehlo.shapes import ReshapeOp
from ...rules.effects import is_constant
from ...support.diagnostics import Refusal
from ...support.operations import every_operation
from ...support.phase import Phase
from ...support.type_guards import is_tensor
from .device_pairs import remove_cotangent_delay
from .outline import DeviceStep, move, outline_device_steps, rebuild, replace_results

NOT_SHARDABLE = (
    "the gradient on each device would read a forward value of type {type}, but such a value cannot be passed as a "
    "sharded array"
)


def _type_on_one_device(step: DeviceStep, value: SSAValue) -> TensorType[Attribute]:
    """Return the type of a residual on one device.

    Raises:
        Refusal: The value is not a tensor of static shape.
    """
    type_ = value.type
    if not is_tensor(type_) or DYNAMIC_INDEX in type_.get_shape():
        raise Refusal(step.forward, NOT_SHARDABLE.format(type=type_))
    return type_ if type_.get_num_dims() else TensorType(type_.element_type, [1], type_.encoding)


def _type_on_all_devices(step: DeviceStep, part: TensorType[Attribute]) -> TensorType[Attribute]:
    """Return the global type of a residual.

    `part`: the type on one device.
    """
    sizes = axes_of_mesh(step.forward, step.mesh)
    rows, *others = part.get_shape()
    devices = prod(sizes[axis] for axis in step.forward.manual_axes.data)
    return TensorType(part.element_type, [rows * devices, *others], part.encoding)


def _residual_sharding(step: DeviceStep, part: TensorType[Attribute]) -> str:
    """Return the sharding of a residual: all manual axes shard the first dimension, and the partitioner chooses the
    dimensions that other axes shard."""
    manual = step.forward.manual_axes.data
    open_axes = "" if set(manual) == set(axes_of_mesh(step.forward, step.mesh)) else "?"
    first = ", ".join([*(f'"{axis}"' for axis in manual), *filter(None, [open_axes])])
    return f"@{step.mesh}, [{', '.join([f'{{{first}}}', *[f'{{{open_axes}}}'] * (part.get_num_dims() - 1)])}]"


def split_device_steps(steps: Sequence[DeviceStep]) -> None:
    """Restore the two bodies of each step, the last step first.

    Raises:
        Refusal: The gradient reads a value that cannot be a residual.
    """
    for step in reversed(steps):
        if step.delay is not None:
            remove_cotangent_delay(step.delay)
        _Bodies(step).write()
        for op in step.newly_marked:
            op.attributes.pop(Names.PHASE, None)
        for op in (step.backward, step.forward, step.function):
            Rewriter.erase_op(op)


@contextmanager
def device_steps_outlined(module: ModuleOp) -> Generator[None]:
    """Outline per-device steps within the context, and re-split them on exit.

    Raises:
        Refusal: As in `split_device_steps`.
    """
    steps = outline_device_steps(module)
    try:
        yield
    finally:
        split_device_steps(steps)


@dataclass(frozen=True)
class _Parts:
    """The operations of the forward pass and of the gradient, in program order.

    Attributes:
        own, cotangents: The arguments of the function for the forward pass and for the gradient.
        kept, returned: The forward results that other operations read, and the results of the gradient.
    """

    forward: tuple[Operation, ...]
    backward: tuple[Operation, ...]
    own: tuple[SSAValue, ...]
    cotangents: tuple[SSAValue, ...]
    kept: tuple[SSAValue, ...]
    returned: tuple[SSAValue, ...]


def _parts(step: DeviceStep) -> _Parts:
    block = step.function.body.block
    *operations, last = block.ops
    input_count, result_count = len(step.forward.inputs), len(step.forward.results)
    cotangents = set(block.args[input_count:])
    forward, backward = list[Operation](), list[Operation]()
    for op in operations:
        is_in_gradient = backward or _is_of_gradient(op) or not cotangents.isdisjoint(read_values(op))
        (backward if is_in_gradient else forward).append(op)
    arguments = (tuple(block.args[:input_count]), tuple(block.args[input_count:]))
    results = tuple(last.operands)
    return _Parts(tuple(forward), tuple(backward), *arguments, results[:result_count], results[result_count:])


def _is_of_gradient(op: Operation) -> bool:
    stated = op.attributes.get(Names.PHASE)
    return is_copy(op) or (isinstance(stated, StringAttr) and stated.data == Phase.GRADIENT)


@dataclass(frozen=True)
class _Crossing:
    """The forward values that the gradient reads.

    Attributes:
        constants: The constants. They are cloned.
        shared: The argument indices of the values that are arguments of the forward pass.
        residuals: All other values.
    """

    constants: tuple[OpResult, ...]
    shared: tuple[int, ...]
    residuals: tuple[OpResult, ...]


def _crossing(parts: _Parts) -> _Crossing:
    results = {result for op in parts.forward for result in op.results}
    read = dict.fromkeys([value for op in parts.backward for value in read_values(op)] + list(parts.returned))
    values = [value for value in read if isinstance(value, OpResult) and value in results]
    return _Crossing(
        constants=tuple(value for value in values if is_constant(value.op)),
        shared=tuple(index for index, argument in enumerate(parts.own) if argument in read),
        residuals=tuple(value for value in values if not is_constant(value.op)),
    )


class _Bodies:
    """Builds the two bodies of a step.

    Attributes:
        step: The step.
        parts: Its operations.
        crossing: The forward values that the gradient reads.
        types, shardings: For each residual, its type on one device and its sharding.
    """

    def __init__(self, step: DeviceStep):
        self.step, self.parts = step, _parts(step)
        self.crossing = _crossing(self.parts)
        self.types = [_type_on_one_device(step, value) for value in self.crossing.residuals]
        self.shardings = [_residual_sharding(step, type_) for type_ in self.types]

    def write(self) -> None:
        """Insert the two bodies in place of the empty bodies."""
        # The gradient is built first, while the forward operations are still in place.
        gradient = self._gradient_block()
        residuals = self._write_forward(self._forward_block())
        self._write_backward(gradient, residuals)

    def _write_forward(self, block: Block) -> Sequence[SSAValue]:
        """Insert the forward body. Return the residuals as global values."""
        empty = self.step.forward
        inputs = list(zip(empty.inputs, empty.in_shardings.data, strict=True))
        results = [
            (result.type, sharding) for result, sharding in zip(empty.results, empty.out_shardings.data, strict=True)
        ]
        whole_types = [_type_on_all_devices(self.step, type_) for type_ in self.types]
        residuals = list(zip(whole_types, self.shardings, strict=True))
        forward = rebuild(empty, inputs, [*results, *residuals], block)
        replace_results(empty, range(len(results)), forward)
        return forward.results[len(results) :]

    def _write_backward(self, block: Block, residuals: Sequence[SSAValue]) -> None:
        """Insert the backward body, which reads the residuals."""
        empty = self.step.backward
        inputs = list(zip(empty.inputs, empty.in_shardings.data, strict=True))
        cotangents, own = inputs[: len(self.parts.cotangents)], inputs[len(self.parts.cotangents) :]
        shared = [own[index] for index in self.crossing.shared]
        results = list(zip(empty.result_types, empty.out_shardings.data, strict=True))
        operands = [*cotangents, *shared, *zip(residuals, self.shardings, strict=True)]
        backward = rebuild(empty, operands, results, block)
        replace_results(empty, range(len(results)), backward)

    def _gradient_block(self) -> Block:
        parts, crossing = self.parts, self.crossing
        shared = [parts.own[index] for index in crossing.shared]
        values = [*parts.cotangents, *shared, *crossing.residuals]
        block = Block(arg_types=[*(value.type for value in (*parts.cotangents, *shared)), *self.types])
        mapping = dict[SSAValue, SSAValue]()
        for value in crossing.constants:
            mapping[value] = self._clone_constant(value, block)
        for value, argument in zip(values, block.args, strict=True):
            argument.name_hint = value.name_hint
            mapping[value] = _reshape(argument, value.type, block)
        _replace_operands(mapping, parts.backward)
        move(parts.backward, block)
        block.add_op(ShardyReturnOp.create(operands=[mapping.get(value, value) for value in parts.returned]))
        return block

    def _clone_constant(self, value: OpResult, block: Block) -> SSAValue:
        """Add a clone of a constant to the block, without attributes of this dialect."""
        constant = value.op.clone()
        constant.attributes = {
            name: attribute for name, attribute in constant.attributes.items() if not name.startswith(Names.PREFIX)
        }
        constant.location = self.step.backward.location
        block.add_op(constant)
        return constant.results[value.index]

    def _forward_block(self) -> Block:
        parts = self.parts
        block = Block(arg_types=[value.type for value in parts.own])
        mapping = dict[SSAValue, SSAValue](zip(parts.own, block.args, strict=True))
        for value, argument in mapping.items():
            argument.name_hint = value.name_hint
        _replace_operands(mapping, parts.forward)
        move(parts.forward, block)
        residuals = zip(self.crossing.residuals, self.types, strict=True)
        passed = [_reshape(value, type_, block) for value, type_ in residuals]
        block.add_op(ShardyReturnOp.create(operands=[*(mapping.get(value, value) for value in parts.kept), *passed]))
        return block


def _reshape(value: SSAValue, type_: Attribute, block: Block) -> SSAValue:
    if value.type == type_:
        return value
    reshape = ReshapeOp(value, type_)
    block.add_op(reshape)
    return reshape.result


def _replace_operands(mapping: Mapping[SSAValue, SSAValue], operations: Sequence[Operation]) -> None:
    """Replace operands of the operations and of all operations nested in them, according to `mapping`."""
    for op in operations:
        for inner in every_operation(op):
            inner.operands = [mapping.get(operand, operand) for operand in inner.operands]
