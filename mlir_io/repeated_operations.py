"""Verification of a module in which equal operations are verified once: a step has thousands of additions of one type.

Whether a StableHLO or CHLO operation without regions is valid depends only on its class, the types of its operands and
results, and its properties.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Block, ErasedSSAValue, Operation
from xdsl.traits import Commutative, ConstantLike, IsTerminator, Pure

from .xdsl_workarounds import symbols_remembered

_DIALECTS = frozenset({"stablehlo", "chlo"})
# Traits whose verification does not depend on an operation's position, operands or users.
_LOCAL = (Commutative, ConstantLike, Pure)


def verify_nested(root: Operation) -> None:
    """Verify the operation and all nested ones, with the same errors as `root.verify()` but in less time."""
    with symbols_remembered():
        _Verifier().verify(root)


class _Verifier:
    """xDSL's verifier with a set of keys of operations that are known to be valid.

    The keys contain ids of types and properties, which the operations keep alive.
    """

    def __init__(self) -> None:
        self.verified = set[tuple[object, ...]]()

    def verify(self, op: Operation) -> None:
        op.verify(verify_nested_ops=False)
        for region in op.regions:
            for block in region.blocks:
                # As xDSL verifies a block, apart from its operations: parent pointers, and whether it may be empty.
                if block.parent is not region:
                    raise ValueError("the block does not point to the region that it is in")
                self._verify_block(block)

    def _verify_block(self, block: Block) -> None:
        if block.is_empty:
            block.verify()
        last = block.last_op
        for op in block.ops:
            if op.parent is not block:
                raise ValueError("the operation does not point to the block that it is in")
            key = None if op is last else key_of(op)
            if key is None:
                self.verify(op)
            elif key not in self.verified:
                op.verify(verify_nested_ops=False)
                self.verified.add(key)


@cache
def _is_local(kind: type[Operation]) -> bool:
    if kind.name.partition(".")[0] not in _DIALECTS or kind.has_trait(IsTerminator):
        return False
    return all(isinstance(trait, _LOCAL) for trait in kind.traits)


def key_of(op: Operation) -> tuple[object, ...] | None:
    """Return a key that is equal for operations of which either all or none are valid; None if validity depends on
    more.

    The key contains ids of types and properties, and is meaningful only while these are alive.
    """
    if op.regions or not _is_local(type(op)):
        return None
    operands, results = op.operands, op.results
    if any(isinstance(value, ErasedSSAValue) for value in operands):
        return (id(op),)
    types = [*[id(value.type) for value in operands], *[id(result.type) for result in results]]
    properties = [part for name, value in op.properties.items() for part in (name, id(value))]
    return (type(op), len(operands), len(op.successors), *types, *properties)
