"""recompute-cse: merge what is computed twice for no reason, and drop what is dead. Copies stay apart from originals.

    %1 = stablehlo.sine %x        // forward
    %2 = stablehlo.sine %x        // forward: merged with %1
    %3 = stablehlo.sine %x        // gradient: kept, or %1 would live until here; both get `recompute.phase`

A general CSE compares attributes, so the attributes that are left (`recompute.copy`, `recompute.id` on copies,
`recompute.phase` on twins of different phases) keep every later CSE from undoing the recomputation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator
from xdsl.transforms.dead_code_elimination import region_dce

from ..analysis.step.functions import functions_of, single_block
from ..analysis.step.phases import BACKWARD, Phases, phases
from ..dialects.recompute import Names
from ..rules.effects import why_impure
from ..rules.kinds import is_constant
from ..rules.names import name_of

# Which copy of what an operation is does not change what it computes.
_BOOKKEEPING = frozenset({Names.ID, Names.NEED_CSE, Names.TARGET_GRAD, Names.CHECKPOINT, Names.PHASE})


@dataclass(frozen=True, eq=False)
class Twin:
    """An operation as a dictionary key: equal to every operation that computes the same in the same `place`.

    `call`: the inlined call that it comes from, if it matters.
    """

    operation: Operation
    place: str
    call: object = None

    @property
    def parts(self) -> tuple[object, ...]:
        op = self.operation
        attributes = frozenset((k, v) for k, v in op.attributes.items() if k not in _BOOKKEEPING)
        types = tuple(op.result_types)
        properties = frozenset(op.properties.items())
        return name_of(op), self.place, self.call, attributes, properties, tuple(op.operands), types, len(op.regions)

    def __hash__(self) -> int:
        return hash(self.parts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Twin)
            and self.parts == other.parts
            and all(
                mine.is_structurally_equivalent(theirs)
                for mine, theirs in zip(self.operation.regions, other.operation.regions, strict=True)
            )
        )


def cse(module: ModuleOp, call_of: Callable[[Operation], object] = lambda op: None) -> int:
    """Merge twins and drop dead operations; returns how many operations went.

    `call_of`: the inlined call that an operation comes from. Twins of different calls stay apart, constants excepted,
    and so does what stands in the loops of a call: else it could not come back as it was.
    """
    before = sum(1 for _ in module.walk())
    for function in functions_of(module):
        block = single_block(function)
        region_dce(function.body)
        classified = phases(function)
        # A twin reads what the operation reads that it is merged with, so nothing new dies.
        _merge_twins(block, _place(classified), call_of)
        if (classified := phases(function)) is not None:
            _state_phases_of_twins(classified)
    return before - sum(1 for _ in module.walk())


def _place(classified: Phases | None) -> Callable[[Operation], str]:
    """Twins merge within a phase only: a forward twin of a gradient operation would have to live until there."""
    if classified is None:
        return lambda op: ""
    return lambda op: "" if is_constant(op) else classified.phase.get(op, "")


def _may_merge(op: Operation) -> bool:
    return not op.has_trait(IsTerminator) and name_of(op) != "recompute.token" and why_impure(op) is None


def _merge_twins(block: Block, place: Callable[[Operation], str], call_of: Callable[[Operation], object]) -> None:
    first = dict[Twin, Operation]()
    for op in list(block.ops):
        for region in op.regions if call_of(op) is None else ():
            for inner in region.blocks:
                _merge_twins(inner, lambda _: "", call_of)
        if not _may_merge(op):
            continue
        kept = first.setdefault(Twin(op, place(op), None if is_constant(op) else call_of(op)), op)
        if kept is not op and not _one_is_held(kept, op, place):
            for old, new in zip(op.results, kept.results, strict=True):
                old.replace_all_uses_with(new)
            _keep_marks(kept, op)
            op.detach()
            op.erase()


def _one_is_held(one: Operation, other: Operation, place: Callable[[Operation], str]) -> bool:
    """Whether one of two twins is recomputed, and the backward pass reads the other one, which is not.

    Merged they would be held, and the copy would be for nothing.
    """
    if (Names.ID in one.attributes) == (Names.ID in other.attributes):
        return False
    held = other if Names.ID in one.attributes else one
    block = held.parent
    assert block is not None, "twins stand in a block"
    readers = (block.find_ancestor_op_in_block(use.operation) for result in held.results for use in result.uses)
    return any(reader is not None and place(reader) in BACKWARD for reader in readers)


def _keep_marks(kept: Operation, merged: Operation) -> None:
    """Notes for readers survive on the operation that stays, and who its copies are."""
    for name in (Names.TARGET_GRAD, Names.CHECKPOINT, *({Names.ID} - kept.attributes.keys())):
        if name in merged.attributes:
            kept.attributes[name] = merged.attributes[name]


def _state_phases_of_twins(classified: Phases) -> None:
    """Write the phase on operations that equal one of another phase, so that no later CSE merges them."""
    twins = dict[Twin, list[Operation]]()
    for op in classified.order.operations:
        if _may_merge(op) and not is_constant(op):
            twins.setdefault(Twin(op, ""), []).append(op)
    for group in twins.values():
        if len({classified.phase[op] for op in group}) > 1:
            for op in group:
                op.attributes[Names.PHASE] = StringAttr(classified.phase[op])


@dataclass(frozen=True)
class CsePass(ModulePass):
    """Merge twins, keep copies and phases apart, drop dead operations."""

    name = "recompute-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        cse(op)
