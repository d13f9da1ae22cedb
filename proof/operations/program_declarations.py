"""Declarations that a program makes with attributes. Only declarations in the original program are valid.

Examples:
    stablehlo.custom_call @mine(%x) {recompute.repeatable}          declares the target @mine to be pure
    sdy.sharding_constraint %x <@mesh, [{}]> {recompute.shards_kept}    a pass wrote it: never a declaration
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from xdsl.dialects.builtin import ModuleOp

from ...dialects.names import Names
from ...support.diagnostics import place_of
from ...support.interface import interface_wording
from ...support.operations import every_operation
from .pure_operations import is_listed, target_of


def declared_repeatable(before: ModuleOp, patterns: Collection[str]) -> frozenset[str]:
    """Return the custom-call targets in the original program that an attribute or a pattern declares to be pure. Listed
    targets need no declaration.

    `patterns`: shell-style patterns of targets, from the caller.
    """
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
    """Yield a message for each declaration that is ignored because only the rewritten program makes it. The message
    names the operation and the valid ways to make the declaration.

    Args:
        before, after: The programs.
        patterns: Shell-style patterns of the targets that the caller declares to be pure.
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
                f"{place_of(op)}: {Names.REPEATABLE} on @{target} is ignored, because only the rewritten program "
                f"has it: declare it on the call in the original program, or with {option}"
            )
    if added_constraints or any(Names.SHARDS_KEPT in op.attributes for op in every_operation(before)):
        return
    if (constraint := next((op for op in every_operation(after) if Names.SHARDS_KEPT in op.attributes), None)) is None:
        return
    option = interface_wording(", or accept them with --added-constraints", "")
    yield (
        f"{place_of(constraint)}: {Names.SHARDS_KEPT} is ignored, because only the rewritten program has it: "
        f"request added constraints with {Names.SLICE_ACTIVATION} on the segment in the original program{option}"
    )
