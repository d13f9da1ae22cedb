"""Effects of operations: whether an operation may run twice, or the reason why it must not; also predicates for
constants, collectives, products and other classes of operations.

An operation may run twice if it is a function of its operands, or if the user permits it. An operation without facts
has unknown effects and is never recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.ir import Operation

from ..dialects.names import Names
from ..support.interface import interface_wording
from ..support.operations import name_of
from .facts import Effect, Facts, OpClass
from .registry import OperationNames, facts_of
from .traits import why_trait_ignored


def is_constant(op: Operation) -> bool:
    """Return whether the operation is a constant. Recomputing a constant costs nothing and keeps no operands live."""
    return _is(op, OpClass.CONSTANT)


def is_collective(op: Operation) -> bool:
    """Return whether the operation is a collective. All devices must run collectives the same number of times and in
    the same order."""
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
    # Most operations have no class, and even a lookup in an empty set would hash `kind`.
    return facts is not None and bool(facts.op_classes) and kind in facts.op_classes


PURE = OperationNames(lambda facts: facts.effect is Effect.PURE)
# Operations that are pure if and only if all operations in their regions are.
PURE_IF_BODY_IS = OperationNames(lambda facts: facts.effect is Effect.PURE_IF_BODY_IS)
# The last operations of blocks. The interpreter ends a block there.
TERMINATORS = OperationNames(lambda facts: facts.effect is Effect.TERMINATOR)
# Operations that are not functions of their operands. Their facts give the reason.
IMPURE = OperationNames(lambda facts: facts.effect is Effect.IMPURE)

# Operations that run exactly one of their regions.
BRANCHES = OperationNames(lambda facts: facts.alternatives)

ON_MEMORY = (
    "it operates on a memref, whose contents may change before the copy runs: "
    "recompute on tensors, before bufferization"
)
NO_STATE = "it lacks the random-state operand that its declaration names, so a copy would draw different numbers"
# `type` suffices because these classes of xDSL have no subclasses.
_REFERENCES = frozenset({MemRefType, UnrankedMemRefType})


def why_impure(op: Operation) -> str | None:
    """Return the reason why a second execution could change a result, or None if the operation is pure."""
    return why_impure_by(op, facts_of(op))


def why_impure_by(op: Operation, facts: Facts | None) -> str | None:
    """Return the same reason as `why_impure`. Use this function if the facts about the operation are already known."""
    reason = _own_reason(op, facts)
    if reason is not None or facts is None or facts.effect is not Effect.PURE_IF_BODY_IS:
        return reason
    return why_body_impure(op)


def why_body_impure(op: Operation) -> str | None:
    """Return the reason why an operation inside the regions is impure, or None if all operations are pure."""
    for region in op.regions:
        for inner in region.walk():
            if (reason := _own_reason(inner, facts_of(inner))) is not None:
                return f"{name_of(inner)} inside: {reason}"
    return None


def _own_reason(op: Operation, facts: Facts | None) -> str | None:
    """Return the reason why the operation itself, without its regions, is impure, or None if it is pure."""
    if facts is None:
        ignored = why_trait_ignored(op)
        trait = "" if ignored is None else f" (its trait does not suffice: {ignored})"
        return f"the effects of {name_of(op)} are unknown{trait}; {_remedy_for(name_of(op))}"
    if facts.effect is Effect.TERMINATOR:
        return None
    if facts.effect is Effect.IMPURE:
        return facts.reason
    if facts.state is not None and facts.state >= len(op.operands):
        return NO_STATE
    return ON_MEMORY if not facts.on_tensors and works_on_memory(op) else None


def _remedy_for(name: str) -> str:
    """Return the advice for an operation without facts: the code that declares it pure to the passes and to the proof.

    Both declarations are necessary, because the proof does not read the facts of the passes.
    """
    place = interface_wording("in a file for --load-rules, ", "")
    return (
        f"if it is pure, declare it {place}to the passes, "
        f'`from recompute.rules import pure, register; register("{name}", pure())`, and to the proof, '
        f'`from recompute.proof import register_pure; register_pure("{name}")` (docs/foreign_dialects.md)'
    )


def works_on_memory(op: Operation) -> bool:
    """Return whether an operand or result is a memref."""
    types = [*[type(value.type) for value in op.operands], *[type(result.type) for result in op.results]]
    return not _REFERENCES.isdisjoint(types)


# Random operations whose state is hidden, not an operand.
HIDDEN_STATE = frozenset({"stablehlo.rng"})


@dataclass(frozen=True)
class Permission:
    """The impure operations that the user permits the passes to recompute. In addition, the attribute
    `recompute.repeatable` permits the recomputation of a single operation.

    Attributes:
        collectives: Whether collectives may be recomputed, as with `mp_comm_recompute` of MindSpore. The copies use new
            channels, and all devices run them the same number of times.
        preserve_rng_state: If False, random operations with a hidden state may be recomputed. The copies draw different
            numbers, so the results change. PyTorch and Paddle have an option with this name.
    """

    collectives: bool = False
    preserve_rng_state: bool = True

    def why_not(self, op: Operation) -> str | None:
        """Return the reason why the operation must not be recomputed, or None if it may be recomputed."""
        is_declared = Names.REPEATABLE in op.attributes
        if (self.collectives or is_declared) and is_collective(op):
            # The permission covers the communication, but not other effects.
            return ON_MEMORY if works_on_memory(op) else why_body_impure(op)
        if (is_declared or not self.preserve_rng_state) and name_of(op) in HIDDEN_STATE:
            return None
        return why_impure(op)


NO_PERMISSION = Permission()
