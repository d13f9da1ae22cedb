"""recompute-cse: merge equal operations and erase dead ones, but never merge copies with originals.

    %1 = stablehlo.sine %x        // forward
    %2 = stablehlo.sine %x        // forward: merged with %1
    %3 = stablehlo.sine %x        // gradient: kept, or %1 would be live until here; both get `recompute.phase`

A general CSE merges only operations with equal attributes. Three attributes therefore remain, and prevent later CSE
passes from undoing the recomputation: `recompute.copy`, `recompute.id` on copies, and `recompute.phase` on equal
operations of different phases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from ..analysis.step.direction import Direction
from ..analysis.step.jax_paths import scope_of
from ..analysis.step.order import functions_of, single_block
from ..analysis.step.phases import Phases, phases, updated_phases
from ..dialects.dead_code import drop_dead_code, erase_unread
from ..dialects.names import Names
from ..rules.effects import is_constant, why_impure
from ..support.operations import block_of, every_operation, name_of, operations_in
from ..support.phase import Phase
from .offload import remove_unused_moves
from .outlining.nested_steps import outline_temporarily

# Attributes that do not change what an operation computes.
_BOOKKEEPING = frozenset({Names.ID, Names.NEED_CSE, Names.TARGET_GRAD, Names.CHECKPOINT, Names.PHASE})


@dataclass
class ValueNumbers:
    """Value numbering by structural comparison: operations with the same number compute the same values.

    An operation is numbered after its operands have been merged, so its operands are final.

    Attributes:
        by_key: The first operation with each key, and its value number. Equal operations have the same key.
        attributes_by_id: Each attribute and its number, by the id of the attribute object.
        attribute_numbers: The number of each attribute; equal attributes share a number.
        first_results: For each result of an unmerged duplicate, the corresponding result of the first operation.
        count: The largest value number so far.
    """

    by_key: dict[tuple[object, ...], list[tuple[Operation, int]]] = field(
        default_factory=dict[tuple[object, ...], list[tuple[Operation, int]]]
    )
    attributes_by_id: dict[int, tuple[Attribute, int]] = field(default_factory=dict[int, tuple[Attribute, int]])
    attribute_numbers: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    first_results: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    count: int = 0

    def of(self, op: Operation) -> int:
        """Return the value number of the operation, which is a new number unless an equal operation has been numbered
        before."""
        listed = self.by_key.setdefault(self._key(op), [])
        for other, number in listed:
            if _same_regions(op, other):
                return number
        self.count += 1
        listed.append((op, self.count))
        return self.count

    def _key(self, op: Operation) -> tuple[object, ...]:
        number, properties = self._number, op.properties
        attributes = [(name, number(value)) for name, value in op.attributes.items() if name not in _BOOKKEEPING]
        named = [(name, number(value)) for name, value in properties.items()]
        types = tuple([number(result.type) for result in op.results])
        read = op._operands  # pyright: ignore[reportPrivateUsage]
        if self.first_results:
            read = map(self.first_results.get, read, read)
        return (
            name_of(op),
            _sorted_by_name(attributes),
            _sorted_by_name(named),
            tuple(map(id, read)),
            types,
            len(op.regions),
        )

    def _number(self, attribute: Attribute) -> int:
        """Return the number that represents the attribute in keys. Attributes are looked up by `id` first, since
        comparing them is slow."""
        if (entry := self.attributes_by_id.get(id(attribute))) is None:
            entry = attribute, self.attribute_numbers.setdefault(attribute, len(self.attribute_numbers))
            self.attributes_by_id[id(attribute)] = entry
        return entry[1]


def _sorted_by_name(named: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(named) if len(named) < 2 else tuple(sorted(named))


def _same_regions(op: Operation, other: Operation) -> bool:
    pairs = zip(op.regions, other.regions, strict=True)
    return all(region.is_structurally_equivalent(other_region) for region, other_region in pairs)


def cse(
    module: ModuleOp,
    phases_of: Mapping[FuncOp, Phases] = MappingProxyType({}),
    call_of: Callable[[Operation], object] = lambda op: None,
) -> int:
    """Merge equal operations and erase dead ones.

    Args:
        module: The module, which is changed in place.
        phases_of: The phases of functions before copies and tokens were inserted.
        call_of: Maps an operation to the inlined call that it comes from. Equal operations from different calls are
            merged only if they are constants, and operations in the loops of a call are not merged; otherwise the call
            could not be re-outlined.

    Returns:
        The number of removed operations.
    """
    before = len(every_operation(module))
    for function in functions_of(module):
        block = single_block(function)
        drop_dead_code(function.body)
        classified = updated_phases(phases_of[function]) if function in phases_of else phases(function)
        # Merged duplicates have the same operands, so merging them makes no operation dead and changes no phase.
        kinds = _merge_duplicates(block, _merge_phase_of(classified), call_of)
        if classified is not None:
            _write_phases_of_duplicates(kinds, classified)
    return before - len(every_operation(module))


def merge_into_first(module: ModuleOp, may_replace: Callable[[Operation], bool]) -> int:
    """Merge equal operations regardless of their phases, and erase dead ones. The phases need not be known.

    Args:
        module: The module, which is changed in place.
        may_replace: Returns whether an operation may be replaced by an equal earlier operation. The replacement extends
            the live range of the earlier operation.

    Returns:
        The number of removed operations.
    """
    before = len(every_operation(module))
    for function in functions_of(module):
        _merge_duplicates(single_block(function), lambda _: "", lambda _: None, may_replace)
        drop_dead_code(function.body)
    return before - len(every_operation(module))


def _merge_phase_of(classified: Phases | None) -> Callable[[Operation], str]:
    """Return a function that maps an operation to its phase; only operations of the same phase may be merged.

    Merging across phases would extend live ranges from the forward pass to the gradient.
    """
    if classified is None:
        return lambda op: ""
    return lambda op: "" if is_constant(op) else classified.phase.get(op, "")


def _may_merge(op: Operation) -> bool:
    return not _never_merged(type(op)) and why_impure(op) is None


@cache
def _never_merged(kind: type[Operation]) -> bool:
    return kind.name == "recompute.token" or kind.has_trait(IsTerminator)


def _merge_duplicates(
    block: Block,
    place: Callable[[Operation], str],
    call_of: Callable[[Operation], object],
    may_replace: Callable[[Operation], bool] = lambda _: True,
) -> dict[Operation, int]:
    """Merge equal operations of a block; return the value numbers of those remaining operations that are eligible for
    merging."""
    kinds, kind_of = ValueNumbers(), dict[Operation, int]()
    if block.first_op is None or (block.first_op.next_op is block.last_op and not block.first_op.regions):
        # The block has at most one operation and its terminator, as in most reductions.
        return kind_of
    first = dict[tuple[int, str, object], Operation]()
    for op in operations_in(block):
        for region in op.regions if op.regions and call_of(op) is None else ():
            for inner in region.blocks:
                _merge_duplicates(inner, lambda _: "", call_of, may_replace)
        if not _may_merge(op):
            continue
        kind = kinds.of(op)
        original = first.setdefault((kind, place(op), None if is_constant(op) else call_of(op)), op)
        if original is not op and not may_replace(op):
            kinds.first_results.update(zip(op.results, original.results, strict=True))
            continue
        if original is op or _would_save_recomputed(original, op, place):
            kind_of[op] = kind
            continue
        for old, new in zip(op.results, original.results, strict=True):
            old.replace_all_uses_with(new)
        _transfer_attributes(original, op)
        erase_unread(op)
    return kind_of


def _would_save_recomputed(op: Operation, other: Operation, place: Callable[[Operation], str]) -> bool:
    """Return whether exactly one of two equal operations is recomputed, and the backward pass reads a result of the
    other one.

    If the two were merged, the merged value would be saved, and the copy would free no memory.
    """
    if (Names.ID in op.attributes) == (Names.ID in other.attributes):
        return False
    saved = other if Names.ID in op.attributes else op
    block = block_of(saved)
    readers = (block.find_ancestor_op_in_block(use.operation) for result in saved.results for use in result.uses)
    return any(reader is not None and place(reader) == Phase.GRADIENT for reader in readers)


def _transfer_attributes(original: Operation, merged: Operation) -> None:
    """Transfer the attributes that describe readers and copies from the merged operation to the remaining one."""
    for name in (Names.TARGET_GRAD, Names.CHECKPOINT, *({Names.ID} - original.attributes.keys())):
        if name in merged.attributes:
            original.attributes[name] = merged.attributes[name]


def _write_phases_of_duplicates(kinds: Mapping[Operation, int], classified: Phases) -> None:
    """Write the phase on each operation that has a duplicate in another phase, so that no later CSE merges the two.

    A forward operation between two gradients of one forward pass is skipped, since its location would contradict the
    attribute. The phase of its duplicate suffices.
    """
    first = dict[int, Operation]()
    duplicates = dict[int, list[Operation]]()
    for op, kind in kinds.items():
        if (earlier := first.setdefault(kind, op)) is not op:
            duplicates.setdefault(kind, [earlier]).append(op)
    for group in duplicates.values():
        if is_constant(group[0]) or len({classified.phase[op] for op in group}) == 1:
            continue
        for op in group:
            phase = classified.phase[op]
            if phase is not Phase.GRADIENT or scope_of(op.location).direction is not Direction.FORWARD:
                op.attributes[Names.PHASE] = StringAttr(phase.value)


@dataclass(frozen=True)
class CsePass(ModulePass):
    name = "recompute-cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        remove_unused_moves(op)
        with outline_temporarily(op):
            cse(op)
