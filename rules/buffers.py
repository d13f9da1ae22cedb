"""Sizes of types in bytes, and the results that share their storage with an operand."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, TupleType, UnregisteredAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.stablehlo.tokens import FutureType
from ..support.type_guards import is_complex_type, is_shaped
from .facts import Carry, RegionStorage, View
from .registry import OperationNames, declared_type_bytes, facts_of

# Types without data that are unregistered in xDSL.
_NO_DATA = frozenset({"stablehlo.token", "mhlo.token"})


def element_bytes(element: Attribute) -> int | None:
    """Return the size of an element in bytes, rounded up; None for a type that is not numeric."""
    if is_complex_type(element):
        part = element_bytes(element.element_type)
        return None if part is None else 2 * part
    if isinstance(element, IntegerType | AnyFloat):
        return -(-element.bitwidth // 8)
    return 8 if isinstance(element, IndexType) else None


def type_bytes(type_: Attribute) -> int | None:
    """Return the size of a value of this type in bytes.

    A token has 0 bytes. The size of a tuple or a future is the sum of the sizes of its elements. The size is None for a
    dynamic shape and for an unknown type without a registered size.

    Raises:
        ValueError: The registered size function of the type fails.
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


# Operations whose result is a view of an operand, whatever the layout of the operand.
STRIDED_VIEWS = OperationNames(lambda facts: facts.view is View.STRIDED)
# Operations whose result is a view of an operand if the operand is row-major, otherwise a copy.
DENSE_VIEWS = OperationNames(lambda facts: facts.view is View.DENSE)
# Operations whose result i is operand i.
FORWARDS = OperationNames(lambda facts: facts.view is View.FORWARDS)


def is_view(op: Operation) -> bool:
    """Return whether the operation is a view, strided or dense, or forwards its operands."""
    facts = facts_of(op)
    return facts is not None and facts.view is not None


def viewed_operand(op: Operation) -> SSAValue | None:
    """Return the operand that the operation views (strided or dense); None if the operation is not a view."""
    facts = facts_of(op)
    if facts is None or facts.view not in (View.STRIDED, View.DENSE):
        return None
    return op.operands[facts.view_of]


def forwarded_operand(op: Operation, index: int) -> SSAValue | None:
    """Return the operand whose storage is shared by the result with this index, whatever the layout of the operand;
    None if there is no such operand."""
    facts = facts_of(op)
    if facts is None or facts.view in (None, View.DENSE):
        return None
    return op.operands[index if facts.view is View.FORWARDS else facts.view_of]


def is_executed(op: Operation) -> bool:
    """Return whether an operation runs and stores its results even if all its operands are constants.

    Loops and operations that draw random numbers are executed, because XLA folds neither. Operations whose results the
    executor always allocates are also executed.
    """
    facts = facts_of(op)
    if facts is None:
        return False
    loops = any(region.carry is Carry.RESULTS for region in facts.regions)
    return facts.allocated or facts.state is not None or loops


def stored_bytes(op: Operation) -> int | None:
    """Return the size, in bytes, of the storage of each result, or None if the result types determine it."""
    facts = facts_of(op)
    return None if facts is None or facts.stored_bytes is None else facts.stored_bytes(op)


def region_storage(op: Operation) -> tuple[RegionStorage, ...]:
    """Return the storage that each region of a loop or branch uses for its values; empty if the regions compute only
    scalars."""
    facts = facts_of(op)
    if facts is None or not facts.regions:
        return ()
    return tuple(facts.regions[min(index, len(facts.regions) - 1)] for index in range(len(op.regions)))


def carried_values(op: Operation, region: RegionStorage) -> tuple[SSAValue, ...]:
    """Return the values that share their storage with the arguments of a region: the operation's operands, its results,
    or no values."""
    if region.carry is Carry.NOTHING:
        return ()
    return tuple(op.operands if region.carry is Carry.OPERANDS else op.results)
