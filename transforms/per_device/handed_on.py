"""Types and shardings of per-device residuals: passed to a later body on the same device without moving.

    tensor<4x8xf32> on each of 2 × 3 devices        tensor<24x8xf32>, [{"a", "b"}, {}]

All axes shard the first dimension, as JAX passes residuals; a scalar becomes a row of one element.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue

from ...dialects.sdy import axes_of_mesh
from ...support.diagnostics import Refusal
from ...support.type_guards import is_tensor
from .outline import DeviceStep

NO_TENSOR = "the gradient on each device would read a {type} of the forward pass, which no array over devices can hold"


def part_type(step: DeviceStep, value: SSAValue) -> TensorType[Attribute]:
    """The type of a residual on one device. Raises `Refusal` unless it is a tensor of static shape."""
    type_ = value.type
    if not is_tensor(type_) or DYNAMIC_INDEX in type_.get_shape():
        raise Refusal(step.forward, NO_TENSOR.format(type=type_))
    return type_ if type_.get_num_dims() else TensorType(type_.element_type, [1], type_.encoding)


def whole_type(step: DeviceStep, part: TensorType[Attribute]) -> TensorType[Attribute]:
    """The type of the parts of all devices together."""
    sizes = axes_of_mesh(step.forward, step.mesh)
    rows, *others = part.get_shape()
    devices = prod(sizes[axis] for axis in step.forward.manual_axes.data)
    return TensorType(part.element_type, [rows * devices, *others], part.encoding)


def sharding_of(step: DeviceStep, part: TensorType[Attribute]) -> str:
    """Shard along all axes of these devices; other axes of the mesh are left to the partitioner."""
    manual = step.forward.manual_axes.data
    rest = "" if set(manual) == set(axes_of_mesh(step.forward, step.mesh)) else "?"
    first = ", ".join([*(f'"{axis}"' for axis in manual), *filter(None, [rest])])
    return f"@{step.mesh}, [{', '.join([f'{{{first}}}', *[f'{{{rest}}}'] * (part.get_num_dims() - 1)])}]"
