"""Effects of operations: which operations may be executed twice, and why the others may not.

An operation may be executed twice if it is a function of its operands, or if the user permits it. An operation without
declared facts has unknown effects and is never recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.ir import Operation

from ..dialects.names import Names
from ..support.operations import name_of
from .facts import Effect, Facts, OpClass
from .registry import OperationNames, facts_of, remedy_for


def is_constant(op: Operation) -> bool:
    """Return whether the operation is a constant: free to recompute, without operands to keep live."""
    return _is(op, OpClass.CONSTANT)


def is_collective(op: Operation) -> bool:
    """Return whether all devices must execute the operation equally often and in the same order."""
    return _is(op, OpClass.COLLECTIVE)


def is_cast(op: Operation) -> bool:
    """Return whether the operation converts its operand to another element type."""
    return _is(op, OpClass.CAST)


def is_product(op: Operation) -> bool:
    """Return whether the operation is a matrix product or a convolution."""
    return _is(op, OpClass.PRODUCT)


def is_ordering(op: Operation) -> bool:
    """Return whether the operation only orders other operations."""
    return _is(op, OpClass.ORDERING)


def reads_memory(op: Operation) -> bool:
    return _is(op, OpClass.READS_MEMORY)


def writes_memory(op: Operation) -> bool:
    return _is(op, OpClass.WRITES_MEMORY)


def _is(op: Operation, kind: OpClass) -> bool:
    facts = facts_of(op)
    # Nearly all operations have no class, and a lookup in the empty set would still hash `kind`.
    return facts is not None and bool(facts.op_classes) and kind in facts.op_classes


PURE = OperationNames(lambda facts: facts.effect is Effect.PURE)
# These operations are pure exactly if all operations in their regions are.
PURE_IF_BODY_IS = OperationNames(lambda facts: facts.effect is Effect.PURE_IF_BODY_IS)
TERMINATORS = OperationNames(lambda facts: facts.effect is Effect.TERMINATOR)
# These operations are not functions of their operands; their facts state the reason.
IMPURE = OperationNames(lambda facts: facts.effect is Effect.IMPURE)

ON_MEMORY = (
    "it operates on a memref, whose contents may change before the copy runs: "
    "recompute on tensors, before bufferization"
)
NO_STATE = "it lacks the random-state operand that its declaration names, so a copy would draw different numbers"
# Classes are compared exactly, because xDSL's types have no subclasses.
_REFERENCES = frozenset({MemRefType, UnrankedMemRefType})


def why_impure(op: Operation) -> str | None:
    """Return the reason that a second execution could change a result, or None if there is none."""
    return why_impure_by(op, facts_of(op))


def why_impure_by(op: Operation, facts: Facts | None) -> str | None:
    """Return the result of `why_impure` for an operation with these facts."""
    reason = _own_reason(op, facts)
    if reason is not None or facts is None or facts.effect is not Effect.PURE_IF_BODY_IS:
        return reason
    return why_body_impure(op)


def why_body_impure(op: Operation) -> str | None:
    """Return the reason that an operation in the regions is not pure, or None if all are pure."""
    for region in op.regions:
        for inner in region.walk():
            if (reason := _own_reason(inner, facts_of(inner))) is not None:
                return f"{name_of(inner)} inside: {reason}"
    return None


def _own_reason(op: Operation, facts: Facts | None) -> str | None:
    """Return the reason that the operation itself, without its regions, is impure, or None if it is pure."""
    if facts is None:
        return f"the effects of {name_of(op)} are unknown; {remedy_for(name_of(op))}"
    if facts.effect is Effect.TERMINATOR:
        return None
    if facts.effect is Effect.IMPURE:
        return facts.reason
    if facts.state is not None and facts.state >= len(op.operands):
        return NO_STATE
    return ON_MEMORY if not facts.on_tensors and works_on_memory(op) else None


def works_on_memory(op: Operation) -> bool:
    """Return whether an operand or result is a memref."""
    types = [*[type(value.type) for value in op.operands], *[type(result.type) for result in op.results]]
    return not _REFERENCES.isdisjoint(types)


# Random operations whose state is not an operand.
HIDDEN_STATE = frozenset({"stablehlo.rng"})


@dataclass(frozen=True)
class Permission:
    """Recomputation that the user permits beyond pure operations. The attribute `recompute.repeatable` permits a single
    operation.

    Attributes:
        collectives: Whether collectives may be recomputed (MindSpore's `mp_comm_recompute`). The copies use new
            channels and run equally often on all devices.
        preserve_rng_state: If False, unseeded random operations may draw again. They draw different numbers, so the
            results change. PyTorch and Paddle have an option of this name.
    """

    collectives: bool = False
    preserve_rng_state: bool = True

    def why_not(self, op: Operation) -> str | None:
        """Return the reason that the operation must not be recomputed, or None if it may be."""
        is_declared = Names.REPEATABLE in op.attributes
        if (self.collectives or is_declared) and is_collective(op):
            # The permission covers the communication, but not other effects.
            return ON_MEMORY if works_on_memory(op) else why_body_impure(op)
        if (is_declared or not self.preserve_rng_state) and name_of(op) in HIDDEN_STATE:
            return None
        return why_impure(op)


NO_PERMISSION = Permission()
