"""Storages that several values share. A reshape or a transpose is a view of its operand, not a copy of it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...rules.buffers import DENSE_VIEWS, STRIDED_VIEWS, forwarded_operand, type_bytes, viewed_operand
from ...rules.registry import facts_of
from ...support.diagnostics import DynamicShape, Refusal
from ...support.operations import name_of
from ...support.type_guards import is_shaped
from .order import Order

"""The remedy for a value of unknown extents."""


@dataclass(frozen=True)
class Storages:
    """The storages of the values of a block.

    root: the value that owns the storage of each view. All other values, captured ones included, own theirs.
    strided: values that are not stored row by row.
    on_host: owners of storage in host memory.
    """

    root: Mapping[SSAValue, SSAValue]
    strided: Set[SSAValue]
    on_host: Set[SSAValue] = frozenset()

    def of(self, value: SSAValue) -> SSAValue:
        return self.root.get(value, value)

    def bytes_of(self, value: SSAValue) -> int:
        """Return the bytes of the device's memory behind the value. Raises `Refusal` for dynamic shapes."""
        return 0 if self.lies_on_host(value) else value_bytes(self.of(value))

    def lies_on_host(self, value: SSAValue) -> bool:
        return bool(self.on_host) and self.of(value) in self.on_host


def value_bytes(value: SSAValue) -> int:
    try:
        size = type_bytes(value.type)
    except ValueError as error:
        raise Refusal(_maker(value), str(error)) from error
    if size is not None:
        return size
    unknown = f"the bytes of {value.type} are not known"
    if is_shaped(value.type):
        raise DynamicShape(_maker(value), f"{unknown}; recomputation needs static shapes")
    raise Refusal(_maker(value), f"{unknown}; declare them with recompute.rules.register_type")


def _maker(value: SSAValue) -> Operation:
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    assert owner is not None, "a value is made by an operation or is an argument of one of its blocks"
    return owner


def rank_of(value: SSAValue) -> int:
    return len(value.type.get_shape()) if is_shaped(value.type) else 0


def storages(order: Order, strided_outside: Set[SSAValue] = frozenset()) -> Storages:
    """Follow views to the value that owns the storage.

    A reshape of a strided value (a transpose, a broadcast) copies, and owns its result. `strided_outside`: strided
    values that the block may capture.
    """
    root = dict[SSAValue, SSAValue]()
    strided, on_host = set(strided_outside), set[SSAValue]()
    for op in order.operations:
        if (facts := facts_of(op)) is None or facts.view is None:
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
