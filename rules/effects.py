"""Which operations may be executed twice: those known to be functions of their operands.

An operation without declared facts has unknown effects and is never recomputed.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.ir import Operation

from .facts import Effect, Facts
from .names import name_of
from .registry import REMEDY, OperationNames, facts_of

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
    """The reason that executing the operation twice could change a result; None if it could not."""
    facts = facts_of(op)
    reason = _own_reason(op, facts)
    if reason is not None or facts is None or facts.effect is not Effect.PURE_IF_BODY_IS:
        return reason
    return why_body_impure(op)


def why_body_impure(op: Operation) -> str | None:
    """The reason in the regions of the operation; None if all operations in them are pure."""
    for region in op.regions:
        for inner in region.walk():
            if (reason := _own_reason(inner, facts_of(inner))) is not None:
                return f"{name_of(inner)} inside: {reason}"
    return None


def _own_reason(op: Operation, facts: Facts | None) -> str | None:
    """The reason in the operation itself, regardless of its regions."""
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
    """Whether an operand or a result is a reference to memory."""
    types = [*[type(value.type) for value in op.operands], *[type(result.type) for result in op.results]]
    return not _REFERENCES.isdisjoint(types)
