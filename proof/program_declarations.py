"""Declarations that a program makes by attributes: they count in the program before, never in the program after.

stablehlo.custom_call @mine(%x) {recompute.repeatable}          its target is a function of the operands
sdy.sharding_constraint %x <@mesh, [{}]> {recompute.shards_kept}    a pass added it: no declaration anywhere
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import ModuleOp

from ..dialects.names import Names
from ..support.diagnostics import place_of
from ..support.interface import interface_wording
from ..support.operations import every_operation
from .pure_operations import is_listed, target_of


def declared_repeatable(before: ModuleOp, patterns: Collection[str]) -> frozenset[str]:
    """Return the targets of custom calls that the program before or one of the patterns of the caller declares to be
    pure. Listed targets need no declaration."""
    declared = set[str]()
    for op in every_operation(before):
        target = target_of(op)
        if target is None or is_listed(op):
            continue
        if Names.REPEATABLE in op.attributes or any(fnmatchcase(target, pattern) for pattern in patterns):
            declared.add(target)
    return frozenset(declared)


def declarations_only_after(
    before: ModuleOp, after: ModuleOp, patterns: Collection[str], added_constraints: bool
) -> Iterator[str]:
    """Yield a sentence for each declaration that does not count because only the program after makes it. The sentence
    names the place, and the valid ways to declare it.

    Args:
        before, after: The programs.
        patterns: The patterns of targets that the caller declares to be pure.
        added_constraints: Whether the caller accepts added constraints.
    """
    reported = set(declared_repeatable(before, patterns))
    for op in every_operation(after):
        target = target_of(op)
        if Names.REPEATABLE in op.attributes and target is not None and not is_listed(op) and target not in reported:
            reported.add(target)
            option = interface_wording(
                f"--repeatable {target} or the pass option repeatable={target}", f"repeatable=({target!r},)"
            )
            yield (
                f"{place_of(op)}: {Names.REPEATABLE} on @{target} does not count, since only the program after has it: "
                f"declare it on the call in the program before, or with {option}"
            )
    if added_constraints or any(Names.SHARDS_KEPT in op.attributes for op in every_operation(before)):
        return
    if (constraint := next((op for op in every_operation(after) if Names.SHARDS_KEPT in op.attributes), None)) is None:
        return
    option = interface_wording(", or accept them with --added-constraints", "")
    yield (
        f"{place_of(constraint)}: {Names.SHARDS_KEPT} does not count, since only the program after has it: request "
        f"added constraints with {Names.SLICE_ACTIVATION} on the segment in the program before{option}"
    )
