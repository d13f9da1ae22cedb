"""Storages and the values that share them: a reshape or a transpose is a view of its operand, not a copy."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from ...rules.buffers import DENSE_VIEWS, STRIDED_VIEWS, forwarded_operand, type_bytes, viewed_operand
from ...support.diagnostics import DynamicShape, Refusal
from ...support.operations import name_of
from ...support.type_guards import is_shaped, is_tensor
from .order import Order


@dataclass(frozen=True)
class Storages:
    """The storages of the values of a block.

    Attributes:
        root: For each view, the value that owns its storage. All other values own their storage, including captured
            values.
        strided: The values that are not stored in row-major order.
        on_host: The owners of storage in host memory.
    """

    root: Mapping[SSAValue, SSAValue]
    strided: Set[SSAValue]
    on_host: Set[SSAValue] = frozenset()

    def owner(self, value: SSAValue) -> SSAValue:
        return self.root.get(value, value)

    def bytes_of(self, value: SSAValue) -> int:
        """Return the bytes of device memory that hold the value.

        Raises:
            Refusal: The value has a dynamic shape.
        """
        return 0 if self.lies_on_host(value) else value_bytes(self.owner(value))

    def lies_on_host(self, value: SSAValue) -> bool:
        return bool(self.on_host) and self.owner(value) in self.on_host


def value_bytes(value: SSAValue) -> int:
    """Return the size of the value in bytes.

    Raises:
        DynamicShape: The type has dynamic extents.
        Refusal: The size of the type is unknown.
    """
    try:
        size = type_bytes(value.type)
    except ValueError as error:
        raise Refusal(_maker(value), str(error)) from error
    if size is not None:
        return size
    unknown = f"the size in bytes of {value.type} is unknown"
    if is_shaped(value.type):
        remedy = "recomputation needs static shapes: lower the step for the largest shapes that must fit"
        raise DynamicShape(_maker(value), f"{unknown}; {remedy}")
    raise Refusal(_maker(value), f"{unknown}; declare it with recompute.rules.register_type")


def _maker(value: SSAValue) -> Operation:
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    assert owner is not None, "a value is the result of an operation or an argument of one of its blocks"
    return owner


def rank_of(value: SSAValue) -> int:
    """Return the number of dimensions of the value; 0 for a value without a shape."""
    return len(value.type.get_shape()) if is_shaped(value.type) else 0


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a tensor; empty for other values."""
    return value.type.get_shape() if is_tensor(value.type) else ()


def element_type_of(value: SSAValue) -> Attribute | None:
    """Return the element type of a tensor; None for other values."""
    return value.type.element_type if is_tensor(value.type) else None


def storages(order: Order, strided_outside: Set[SSAValue] = frozenset()) -> Storages:
    """Return the owner of each value's storage, found by following views.

    A reshape of a strided value, such as a transpose or a broadcast, copies the value, so its result owns its storage.

    `strided_outside`: strided values that the block may capture.
    """
    root = dict[SSAValue, SSAValue]()
    strided, on_host = set(strided_outside), set[SSAValue]()
    for op, facts in zip(order.operations, order.facts, strict=True):
        if facts is None or facts.view is None:
            if facts is not None and facts.on_host:
                on_host.update(op.results)
            continue
        for index, result in enumerate(op.results):
            source = forwarded_operand(op, index)
            if source is None and name_of(op) in DENSE_VIEWS and viewed_operand(op) not in strided:
                source = viewed_operand(op)
            elif source is not None and (source in strided or name_of(op) in STRIDED_VIEWS):
                strided.add(result)
            if source is not None:
                root[result] = root.get(source, source)
    return Storages(root, strided, on_host)
