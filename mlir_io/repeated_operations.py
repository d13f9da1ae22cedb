"""Verification of modules that checks equal operations only once.

This saves time, because a step contains thousands of additions of the same type, and the rewritten step contains the
same operations again. Whether a StableHLO or CHLO operation without regions is valid depends only on its class, the
types of its operands and results, and its properties. Some operations, such as reductions and sorts, apply a small
region to elements. Their validity also depends on the classes, types and properties of the operations in the region,
and on the values that these operations read.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from xdsl.ir import Attribute, Block, ErasedSSAValue, Operation, Region
from xdsl.traits import Commutative, ConstantLike, IsTerminator, Pure, RecursiveMemoryEffect

from .workarounds.symbols import cached_symbols

_DIALECTS = frozenset({"stablehlo", "chlo"})
# Traits whose verification does not depend on the position, the operands or the users of an operation.
_LOCAL = (Commutative, ConstantLike, Pure)
_ELEMENT_OPERATIONS = frozenset(
    f"stablehlo.{name}" for name in ("reduce", "reduce_window", "select_and_scatter", "scatter", "sort", "map")
)
"""Operations whose region applies to elements."""
_MAX_PARTS = 128
"""The maximum number of parts in a region's key. A key has about eight parts for each operation. Larger regions are
rarely repeated, and have no key."""


class VerifiedOperations:
    """The keys of operations that are known to be valid. An instance can verify more than one module."""

    def __init__(self) -> None:
        self._verified = set[tuple[object, ...]]()
        self._numbers: dict[int, int] = {}
        """The index of each type and property, by its id."""
        self._equal: dict[Attribute, int] = {}
        """The index of each type and property, by its value: parsing may create more than one object for a value."""
        self._alive = list[Attribute]()
        """The objects whose ids are keys. This list keeps them alive."""

    def verify(self, root: Operation) -> None:
        """Verify the operation and its nested operations, with the same errors as `root.verify()` but in less time."""
        with cached_symbols():
            self._verify(root)

    def _verify(self, op: Operation) -> None:
        op.verify(verify_nested_ops=False)
        for region in op.regions:
            for block in region.blocks:
                _verify_pointers(block, region)
                self._verify_block(block)

    def _verify_block(self, block: Block) -> None:
        last, verified = block.last_op, self._verified
        op = block.first_op
        while op is not None:
            if op.parent is not block:
                raise ValueError(f"the parent pointer of {op.name} does not refer to the block that contains it")
            key = None if op is last else self._key(op)
            if key is None or key not in verified:
                self._verify(op)
                if key is not None:
                    verified.add(key)
            op = op.next_op

    def _key(self, op: Operation) -> tuple[object, ...] | None:
        """Return the key of an operation; None if the operation has no key. Indices represent types and properties in
        the key.

        Unlike `key_of`, this also returns keys for operations that apply a small region to elements.
        """
        is_simple = not op.regions and _is_local(type(op))
        if not is_simple and not _is_of_elements(type(op)):
            return None
        shape, facts = list[object](), list[Attribute]()
        if not (_add(op, shape, facts, {}) if is_simple else _add_with_regions(op, shape, facts)):
            return None
        numbers = self._numbers
        try:
            return (*shape, *[numbers[id(fact)] for fact in facts])
        except KeyError:
            return (*shape, *map(self._number, facts))

    def _number(self, fact: Attribute) -> int:
        number = self._numbers.get(id(fact))
        if number is None:
            number = self._numbers[id(fact)] = self._equal.setdefault(fact, len(self._equal))
            self._alive.append(fact)
        return number


def verify_nested(root: Operation) -> None:
    """Verify the operation and its nested operations, with the same errors as `root.verify()` but in less time."""
    VerifiedOperations().verify(root)


def _verify_pointers(block: Block, region: Region) -> None:
    """Verify the parent pointer of a block and, for a block without operations, that its region may contain such a
    block. xDSL makes the same checks."""
    if block.parent is not region:
        raise ValueError("the parent pointer of a block does not refer to the region that contains it")
    if block.is_empty:
        block.verify()


@cache
def _is_local(kind: type[Operation]) -> bool:
    if kind.name.partition(".")[0] not in _DIALECTS or kind.has_trait(IsTerminator):
        return False
    return all(isinstance(trait, _LOCAL) for trait in kind.traits)


@cache
def _is_of_elements(kind: type[Operation]) -> bool:
    return kind.name in _ELEMENT_OPERATIONS and all(isinstance(trait, RecursiveMemoryEffect) for trait in kind.traits)


@cache
def _may_be_inside(kind: type[Operation]) -> bool:
    """Return whether a region with operations of this class may have a key."""
    return _is_local(kind) or kind.name == "stablehlo.return"


def key_of(op: Operation) -> tuple[object, ...] | None:
    """Return a key of the operation. Operations with equal keys are either all valid or all invalid.

    Returns None if the validity of the operation depends on anything that a key does not contain. The key contains the
    ids of types and properties, so it is meaningful only while these objects are alive.
    """
    if op.regions or not _is_local(type(op)):
        return None
    # This runs for every operation. It uses private fields, because xDSL's properties take as much time as all other
    # parts of this function.
    untyped: Any = op
    operands, properties = untyped._operands, op.properties
    for value in operands:
        if type(value) is ErasedSSAValue:
            return (id(op),)
    return (
        type(op),
        len(operands),
        len(untyped._successors),
        *[id(value._type) for value in operands],
        *[id(result._type) for result in untyped.results],
        *properties,
        *map(id, properties.values()),
    )


def _add(op: Operation, shape: list[object], facts: list[Attribute], values: dict[int, int]) -> bool:
    """Append an operation to the parts of a key. Return False if it cannot be part of a key.

    `values`: maps the ids of the values in the key to their indices. The results of the operation are added.
    """
    untyped: Any = op
    operands = untyped._operands
    if untyped._successors:
        return False
    shape.extend((type(op), len(operands), len(op.results), *op.properties))
    for value in operands:
        if type(value) is ErasedSSAValue:
            return False
        facts.append(value._type)
        # A value that is defined outside has no index.
        if values:
            shape.append(values.get(id(value)))
    for result in untyped.results:
        facts.append(result._type)
        values[id(result)] = len(values)
    facts.extend(op.properties.values())
    return True


def _add_with_regions(op: Operation, shape: list[object], facts: list[Attribute]) -> bool:
    """Append an operation and the operations in its regions to the parts of a key. Return False if the operation cannot
    have a key."""
    values = dict[int, int]()
    if not _add(op, shape, facts, values):
        return False
    for region in op.regions:
        for block in region.blocks:
            _verify_pointers(block, region)
            if not _add_block(block, shape, facts, values):
                return False
        shape.append(None)
    return True


def _add_block(block: Block, shape: list[object], facts: list[Attribute], values: dict[int, int]) -> bool:
    """Append the arguments and the operations of a block to the parts of a key. Return False if the block cannot be
    part of a key."""
    shape.append(len(block.args))
    for argument in block.args:
        facts.append(argument.type)
        values[id(argument)] = len(values)
    inner = block.first_op
    while inner is not None:
        if inner.parent is not block:
            raise ValueError(f"the parent pointer of {inner.name} does not refer to the block that contains it")
        is_small = len(shape) <= _MAX_PARTS and not inner.regions and _may_be_inside(type(inner))
        if not is_small or not _add(inner, shape, facts, values):
            return False
        inner = inner.next_op
    return True
