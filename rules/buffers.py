"""Bytes of a type, and which results share the storage of an operand."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, TupleType, UnregisteredAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.stablehlo.tokens import FutureType
from ..support.type_guards import is_complex_type, is_shaped
from .facts import Carry, RegionStorage, View
from .registry import OperationNames, declared_type_bytes, facts_of

# Types without data, which xDSL does not know.
_NO_DATA = frozenset({"stablehlo.token", "mhlo.token"})


def element_bytes(element: Attribute) -> int | None:
    """Return the bytes of one element; types narrower than a byte take one. None for a type without numbers."""
    if is_complex_type(element):
        part = element_bytes(element.element_type)
        return None if part is None else 2 * part
    if isinstance(element, IntegerType | AnyFloat):
        return -(-element.bitwidth // 8)
    return 8 if isinstance(element, IndexType) else None


def type_bytes(type_: Attribute) -> int | None:
    """Return the bytes that a value of the type takes; 0 for tokens and the like, for a tuple or a future the sum of
    those of its elements.

    None for a dynamic shape, and for a foreign type without declared bytes. Raises `ValueError` if the function that
    was declared for them fails.
    """
    if is_shaped(type_):
        size = element_bytes(type_.element_type)
        shape = type_.get_shape()
        return None if size is None or any(dimension < 0 for dimension in shape) else size * prod(shape)
    if isinstance(type_, TupleType | FutureType):
        parts = [type_bytes(part) for part in type_.types]
        return None if None in parts else sum(part for part in parts if part is not None)
    name = _type_name(type_)
    if (declared := declared_type_bytes(name)) is not None:
        return declared(type_)
    if isinstance(type_, UnregisteredAttr) and name not in _NO_DATA:
        return None
    return element_bytes(type_) or 0


def _type_name(type_: Attribute) -> str:
    return type_.attr_name.data if isinstance(type_, UnregisteredAttr) else type_.name


# Their results are views of an operand of any layout.
STRIDED_VIEWS = OperationNames(lambda facts: facts.view is View.STRIDED)
# Their results are views of an operand only if it is row-major.
DENSE_VIEWS = OperationNames(lambda facts: facts.view is View.DENSE)
# Result i is operand i.
FORWARDS = OperationNames(lambda facts: facts.view is View.FORWARDS)


def viewed_operand(op: Operation) -> SSAValue | None:
    """Return the operand of a strided or dense view; None for other operations."""
    facts = facts_of(op)
    if facts is None or facts.view not in (View.STRIDED, View.DENSE):
        return None
    return op.operands[facts.view_of]


def forwarded_operand(op: Operation, index: int) -> SSAValue | None:
    """Return the operand whose storage result `index` shares for any layout; None if there is none."""
    facts = facts_of(op)
    if facts is None or facts.view in (None, View.DENSE):
        return None
    return op.operands[index if facts.view is View.FORWARDS else facts.view_of]


def is_allocated(op: Operation) -> bool:
    """Return whether the executor allocates the results of the operation even if they are constant or returned."""
    facts = facts_of(op)
    return facts is not None and facts.allocated


def stored_bytes(op: Operation) -> int | None:
    """Return the bytes of the storage of each result, if they are not those of its type."""
    facts = facts_of(op)
    return None if facts is None or facts.stored_bytes is None else facts.stored_bytes(op)


def region_storage(op: Operation) -> tuple[RegionStorage, ...]:
    """Return the storage of each region of a loop or branch; empty if the regions compute scalars."""
    facts = facts_of(op)
    if facts is None or not facts.regions:
        return ()
    return tuple(facts.regions[min(index, len(facts.regions) - 1)] for index in range(len(op.regions)))


def carried_values(op: Operation, region: RegionStorage) -> tuple[SSAValue, ...]:
    """Return the values whose bytes the arguments of a region occupy."""
    if region.carry is Carry.NOTHING:
        return ()
    return tuple(op.operands if region.carry is Carry.OPERANDS else op.results)
