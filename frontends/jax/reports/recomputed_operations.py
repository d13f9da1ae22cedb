"""Locate the recomputed operations and the segments of a rewritten step in the modules of the model."""

from __future__ import annotations

from collections import Counter

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ....analysis.step.descriptions import is_scope, module_of, modules_of_copies, place_in_model, without_loop_scopes
from ....analysis.step.marks import is_copy
from ....dialects.names import Names
from ....driver.rewrites.rewritten import Rewritten
from ....planning.by_segment.numbered_segments import is_numbered
from ....reports.by_module import ModuleNames
from ....support.operations import every_operation
from .redrawn_bits import redrawn_bits
from .report_records import RecomputedOperations

OUTSIDE_SEGMENTS = "unnamed"
"""The name for recomputed operations outside all segments."""


def recomputed_operations(rewritten: Rewritten | None, names: ModuleNames) -> RecomputedOperations:
    """Count the recomputed operations by module. `rewritten`: the rewrite that runs; None for a plain step."""
    if rewritten is None:
        return RecomputedOperations()
    return RecomputedOperations(rewritten.copies, _copies_by_module(rewritten, names), redrawn_bits(rewritten))


def modules_of_segments(rewritten: Rewritten, names: ModuleNames) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return, for each numbered segment, the modules to which its operations belong.

    Segments are numbered if they result from the structure of the step instead of named scopes, so their names do not
    refer to the model. If no operation belongs to a module, the source line of the first operation replaces the
    modules.
    """
    parts = dict[str, list[str]]()
    for segment, operations in _operations_of_segments(rewritten).items():
        if is_numbered(segment):
            modules = [names.of_module(module) for op in operations if names and (module := module_of(op))]
            parts[segment] = list(dict.fromkeys(modules)) or list(filter(None, [place_in_model(operations)]))
    return tuple((segment, tuple(places)) for segment, places in parts.items() if places)


def _copies_by_segment(rewritten: Rewritten) -> tuple[tuple[str, int], ...]:
    counts = Counter[str]()
    for group in (group for step in rewritten.plans for group in step.plan.groups):
        counts[group.segment or OUTSIDE_SEGMENTS] += len(group.operations)
    return tuple(counts.most_common())


def _operations_of_segments(rewritten: Rewritten) -> dict[str, list[Operation]]:
    """Return the operations of each segment in the rewritten step, without copies, in program order."""
    segments = dict[str, list[Operation]]()
    for op in every_operation(rewritten.module):
        stated = op.attributes.get(Names.SEGMENT)
        if isinstance(stated, StringAttr) and not is_copy(op):
            segments.setdefault(stated.data, []).append(op)
    return segments


def _copies_by_module(rewritten: Rewritten, names: ModuleNames) -> tuple[tuple[str, int], ...]:
    """Count the copies in the rewritten step by module, or by segment if the model has no named modules."""
    if not names:
        operations = _operations_of_segments(rewritten)
        by_place = Counter[str]()
        for segment, count in _copies_by_segment(rewritten):
            name = without_loop_scopes(segment) if is_scope(segment) else place_in_model(operations.get(segment, ()))
            by_place[name or segment] += count
        return tuple(by_place.most_common())
    copies = filter(is_copy, every_operation(rewritten.module))
    return tuple(Counter(map(names.of_module, modules_of_copies(copies).values())).most_common())
