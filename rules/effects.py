"""Which operations may be executed twice: those known to be functions of their operands, and those that the user
allows. Predicates for the classes of operations (`OpClass`).

An operation without declared facts has unknown effects and is never recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.ir import Operation

from ..dialects.names import Names
from ..support.operations import name_of
from .facts import Effect, Facts, OpClass
from .registry import REMEDY, OperationNames, facts_of


def is_constant(op: Operation) -> bool:
    """Return whether the operation is a constant: free, without operands to keep live, and mergeable across phases."""
    return _is(op, OpClass.CONSTANT)


def is_collective(op: Operation) -> bool:
    """Return whether all devices must execute it, equally often and in the same order."""
    return _is(op, OpClass.COLLECTIVE)


def is_cast(op: Operation) -> bool:
    """Return whether the operation converts the operand to another element type."""
    return _is(op, OpClass.CAST)


def is_product(op: Operation) -> bool:
    """Return whether the operation is a matrix product or a convolution."""
    return _is(op, OpClass.PRODUCT)


def is_ordering(op: Operation) -> bool:
    """Return whether the operation only orders other operations, and computes nothing."""
    return _is(op, OpClass.ORDERING)


def reads_memory(op: Operation) -> bool:
    return _is(op, OpClass.READS_MEMORY)


def writes_memory(op: Operation) -> bool:
    return _is(op, OpClass.WRITES_MEMORY)


def _is(op: Operation, kind: OpClass) -> bool:
    facts = facts_of(op)
    # Nearly all operations have no kinds; a lookup in the empty set would still hash `kind`.
    return facts is not None and bool(facts.kinds) and kind in facts.kinds


PURE = OperationNames(lambda facts: facts.effect is Effect.PURE)
# Pure exactly when everything in their regions is.
PURE_IF_BODY_IS = OperationNames(lambda facts: facts.effect is Effect.PURE_IF_BODY_IS)
TERMINATORS = OperationNames(lambda facts: facts.effect is Effect.TERMINATOR)
# Known not to be functions of their operands; their facts have the reason for messages.
IMPURE = OperationNames(lambda facts: facts.effect is Effect.IMPURE)

ON_MEMORY = "it works on a memref, whose memory may change in between: recompute tensors, and bufferize afterwards"
NO_STATE = "it is not given the random state that its declaration speaks of, and would draw other numbers"
# Exact classes: xDSL's types have no subclasses.
_REFERENCES = frozenset({MemRefType, UnrankedMemRefType})


def why_impure(op: Operation) -> str | None:
    """Return the reason that executing the operation twice could change a result; None if it could not."""
    facts = facts_of(op)
    reason = _own_reason(op, facts)
    if reason is not None or facts is None or facts.effect is not Effect.PURE_IF_BODY_IS:
        return reason
    return why_body_impure(op)


def why_body_impure(op: Operation) -> str | None:
    """Return the reason in the regions of the operation; None if all operations in them are pure."""
    for region in op.regions:
        for inner in region.walk():
            if (reason := _own_reason(inner, facts_of(inner))) is not None:
                return f"{name_of(inner)} inside: {reason}"
    return None


def _own_reason(op: Operation, facts: Facts | None) -> str | None:
    """Return the reason in the operation itself, regardless of its regions."""
    if facts is None:
        return f"the effects of {name_of(op)} are unknown; {REMEDY}"
    if facts.effect is Effect.TERMINATOR:
        return None
    if facts.effect is Effect.IMPURE:
        return facts.reason
    if facts.state is not None and facts.state >= len(op.operands):
        return NO_STATE
    return ON_MEMORY if not facts.on_tensors and works_on_memory(op) else None


def works_on_memory(op: Operation) -> bool:
    """Return whether an operand or a result is a reference to memory."""
    types = [*[type(value.type) for value in op.operands], *[type(result.type) for result in op.results]]
    return not _REFERENCES.isdisjoint(types)


# They draw from a state that is not an operand.
HIDDEN_STATE = frozenset({"stablehlo.rng"})


@dataclass(frozen=True)
class Permission:
    """The operations that may be recomputed. A single operation is permitted by its attribute `recompute.repeatable`.

    Attributes:
        collectives: Collectives may be recomputed, on new channels, on all devices alike: MindSpore's
            `mp_comm_recompute`.
        preserve_rng_state: False lets unseeded random operations draw again, other numbers: the results change
            (PyTorch's and Paddle's option of this name).
    """

    collectives: bool = False
    preserve_rng_state: bool = True

    def why_not(self, op: Operation) -> str | None:
        """Return the reason that the operation may not be recomputed; None if it may."""
        is_declared = Names.REPEATABLE in op.attributes
        if (self.collectives or is_declared) and is_collective(op):
            # The permission covers the communication, but not other effects.
            return ON_MEMORY if works_on_memory(op) else why_body_impure(op)
        if (is_declared or not self.preserve_rng_state) and name_of(op) in HIDDEN_STATE:
            return None
        return why_impure(op)


NOTHING = Permission()
