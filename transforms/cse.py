"""recompute-cse: merge what is computed twice for no reason, and drop what is dead. Copies stay apart from originals.

    %1 = stablehlo.sine %x        // forward
    %2 = stablehlo.sine %x        // forward: merged with %1
    %3 = stablehlo.sine %x        // gradient: kept, or %1 would live until here; both get `recompute.phase`

A general CSE compares attributes, so the attributes that are left (`recompute.copy`, `recompute.id` on copies,
`recompute.phase` on twins of different phases) keep every later CSE from undoing the recomputation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from ..analysis.step.direction import Direction
from ..analysis.step.functions import functions_of, single_block
from ..analysis.step.jax_paths import scope_of
from ..analysis.step.phases import BACKWARD, Phases, phases, phases_now
from ..dialects.dead_code import drop_dead_code
from ..dialects.recompute import Names
from ..rules.effects import why_impure
from ..rules.kinds import is_constant
from ..rules.names import name_of
from ..support.walk import every_operation
from .offload import withdraw
from .plans.nested_steps import nested_steps_apart

# Which copy of what an operation is does not change what it computes.
_BOOKKEEPING = frozenset({Names.ID, Names.NEED_CSE, Names.TARGET_GRAD, Names.CHECKPOINT, Names.PHASE})


@dataclass
class Kinds:
    """Numbers for operations: two with the same number compute the same, as far as that can be seen from outside.

    An operation is numbered when everything that it reads has been merged, so what it reads stays the same. `same`:
    for the results of a twin that stays those of the first.
    """

    alike: dict[tuple[object, ...], list[tuple[Operation, int]]] = field(
        default_factory=dict[tuple[object, ...], list[tuple[Operation, int]]]
    )
    told: dict[int, tuple[Attribute, int]] = field(default_factory=dict[int, tuple[Attribute, int]])
    values: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    same: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    count: int = 0

    def of(self, op: Operation) -> int:
        listed = self.alike.setdefault(self._key(op), [])
        for other, number in listed:
            if _same_regions(op, other):
                return number
        self.count += 1
        listed.append((op, self.count))
        return self.count

    def _key(self, op: Operation) -> tuple[object, ...]:
        attributes = frozenset([(k, self._number(v)) for k, v in op.attributes.items() if k not in _BOOKKEEPING])
        properties = frozenset([(name, self._number(value)) for name, value in op.properties.items()])
        types = tuple([self._number(result.type) for result in op.results])
        read = map(self.same.get, op.operands, op.operands) if self.same else op.operands
        return name_of(op), attributes, properties, tuple(map(id, read)), types, len(op.regions)

    def _number(self, attribute: Attribute) -> int:
        """Of equal attributes the same. Most are even the same object, and comparing by value is slow."""
        if (entry := self.told.get(id(attribute))) is None:
            entry = attribute, self.values.setdefault(attribute, len(self.values))
            self.told[id(attribute)] = entry
        return entry[1]


def _same_regions(one: Operation, other: Operation) -> bool:
    return all(mine.is_structurally_equivalent(theirs) for mine, theirs in zip(one.regions, other.regions, strict=True))


def cse(
    module: ModuleOp,
    known: Mapping[FuncOp, Phases] = MappingProxyType({}),
    call_of: Callable[[Operation], object] = lambda op: None,
) -> int:
    """Merge twins and drop dead operations; returns how many operations went.

    `known`: the phases of functions before operations were put in that wait for the gradient. `call_of`: the inlined
    call that an operation comes from. Twins of different calls stay apart, constants excepted, and so does what stands
    in the loops of a call: else it could not come back as it was.
    """
    before = len(every_operation(module))
    for function in functions_of(module):
        block = single_block(function)
        drop_dead_code(function.body)
        classified = phases_now(known[function]) if function in known else phases(function)
        # A twin reads what the operation reads that it is merged with, so nothing new dies, and no phase changes.
        kinds = _merge_twins(block, _place(classified), call_of)
        if classified is not None:
            _state_phases_of_twins(kinds, classified)
    return before - len(every_operation(module))


def merge_into_first(module: ModuleOp, may_go: Callable[[Operation], bool]) -> int:
    """Merge twins of all phases, and drop dead operations, before anybody asks for phases; returns how many went.

    `may_go`: whether an operation may be replaced by its first twin, whose value lives longer then.
    """
    before = len(every_operation(module))
    for function in functions_of(module):
        _merge_twins(single_block(function), lambda _: "", lambda _: None, may_go)
        drop_dead_code(function.body)
    return before - len(every_operation(module))


def _place(classified: Phases | None) -> Callable[[Operation], str]:
    """Twins merge within a phase only: a forward twin of a gradient operation would have to live until there."""
    if classified is None:
        return lambda op: ""
    return lambda op: "" if is_constant(op) else classified.phase.get(op, "")


def _may_merge(op: Operation) -> bool:
    return name_of(op) != "recompute.token" and why_impure(op) is None and not op.has_trait(IsTerminator)


def _merge_twins(
    block: Block,
    place: Callable[[Operation], str],
    call_of: Callable[[Operation], object],
    may_go: Callable[[Operation], bool] = lambda _: True,
) -> dict[Operation, int]:
    """The kinds of the operations that are left, and may be merged."""
    kinds, kind_of = Kinds(), dict[Operation, int]()
    if block.first_op is None or (block.first_op.next_op is block.last_op and not block.first_op.regions):
        # An operation and its terminator, as in most reductions, or less.
        return kind_of
    first = dict[tuple[int, str, object], Operation]()
    for op in list(block.ops):
        for region in op.regions if call_of(op) is None else ():
            for inner in region.blocks:
                _merge_twins(inner, lambda _: "", call_of, may_go)
        if not _may_merge(op):
            continue
        kind = kinds.of(op)
        kept = first.setdefault((kind, place(op), None if is_constant(op) else call_of(op)), op)
        if kept is not op and not may_go(op):
            kinds.same.update(zip(op.results, kept.results, strict=True))
            continue
        if kept is op or _one_is_held(kept, op, place):
            kind_of[op] = kind
            continue
        for old, new in zip(op.results, kept.results, strict=True):
            old.replace_all_uses_with(new)
        _keep_marks(kept, op)
        op.detach()
        op.erase()
    return kind_of


def _one_is_held(one: Operation, other: Operation, place: Callable[[Operation], str]) -> bool:
    """Whether one of two twins is recomputed, and the backward pass reads the other one, which is not.

    Merged they would be saved, and the copy would be for nothing.
    """
    if (Names.ID in one.attributes) == (Names.ID in other.attributes):
        return False
    saved = other if Names.ID in one.attributes else one
    block = saved.parent
    assert block is not None, "twins stand in a block"
    readers = (block.find_ancestor_op_in_block(use.operation) for result in saved.results for use in result.uses)
    return any(reader is not None and place(reader) in BACKWARD for reader in readers)


def _keep_marks(kept: Operation, merged: Operation) -> None:
    """Notes for readers survive on the operation that stays, and who its copies are."""
    for name in (Names.TARGET_GRAD, Names.CHECKPOINT, *({Names.ID} - kept.attributes.keys())):
        if name in merged.attributes:
            kept.attributes[name] = merged.attributes[name]


def _state_phases_of_twins(kinds: Mapping[Operation, int], classified: Phases) -> None:
    """Write the phase on operations that equal one of another phase, so that no later CSE merges them.

    Not on a forward operation between two gradients of the same forward pass, whose location would disagree: its twin
    says enough.
    """
    twins = dict[int, list[Operation]]()
    for op, kind in kinds.items():
        if not is_constant(op):
            twins.setdefault(kind, []).append(op)
    for group in twins.values():
        if len({classified.phase[op] for op in group}) > 1:
            for op in group:
                phase = classified.phase[op]
                if phase not in BACKWARD or scope_of(op.location).direction is not Direction.FORWARD:
                    op.attributes[Names.PHASE] = StringAttr(phase)


@dataclass(frozen=True)
class CsePass(ModulePass):
    """Merge twins, keep copies and phases apart, drop dead operations."""

    name = "recompute-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        withdraw(op)
        with nested_steps_apart(op):
            cse(op)
