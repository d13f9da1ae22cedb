"""Access to properties and attributes of operations by name, even if xDSL has no class for an operation."""

from __future__ import annotations

from xdsl.dialects.builtin import SymbolRefAttr, UnregisteredAttr
from xdsl.ir import Attribute, Operation

from ...dialects.constants.dense import to_numpy
from ...support.type_guards import is_integer_attribute, is_standard_dense


def flag(op: Operation, name: str) -> bool:
    value = _property(op, name)
    if not is_integer_attribute(value):
        raise ValueError(f"its '{name}' is {value}, expected true or false")
    return bool(value.value.data)


def word(op: Operation, name: str) -> str:
    """Return the name of the case that an enumeration attribute selects. The attribute may be unregistered."""
    value = _property(op, name)
    return value.value.data.strip() if isinstance(value, UnregisteredAttr) else str(getattr(value, "data", ""))


def table(op: Operation, name: str) -> list[list[int]]:
    """Return the rows of an attribute that is a constant matrix of integers. Raises `ValueError` for any other
    attribute."""
    value = _property(op, name)
    if not is_standard_dense(value) or len(value.type.get_shape()) != 2:
        raise ValueError(f"its '{name}' must be a constant matrix of integers")
    return [[int(number) for number in row] for row in to_numpy(value)]


def symbol(op: Operation, name: str) -> SymbolRefAttr:
    value = _property(op, name)
    if not isinstance(value, SymbolRefAttr):
        raise ValueError(f"its '{name}' is {value}, expected a symbol such as @f")
    return value


def _property(op: Operation, name: str) -> Attribute:
    attribute = op.properties[name] if name in op.properties else op.attributes.get(name)
    if attribute is None:
        raise ValueError(f"it has no attribute '{name}'")
    return attribute
