"""List the attempts at a step, the most promising ones first (`attempts_at`). The list depends on the source of the
segments: the user, the scopes of the model, or the structure of the step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from enum import Enum, auto

from xdsl.ir import Operation

from ...analysis.step.step import Step
from ...dialects.names import Names
from ...options.selection import Selection
from ...planning.by_segment.by_structure import cut_into, cuts_by_blocks, cuts_by_structure, single_segment
from ...planning.graph import Graph
from .attempts import DEFAULT_ATTEMPT, Attempt
from .segment_decisions import Segmentation

MANY_OPERATIONS = 2000
"""The number of operations from which a step is large. In a large step, fewer attempts are planned, and the XLA:CPU
model runs only for attempts with a low peak in program order (`best_attempt.py`). Only one way of copying named
segments is tried: each further way would take a tenth of the time of the whole pass, and among 89 large steps in the
examples and benchmarks, this restriction raises the peak of none and lowers the peak of two."""

STRUCTURES = 3
"""Number of divisions by structure that are tried in addition to named segments; in a step with fewer than
`MANY_OPERATIONS` operations, one more. The score is an estimate, so the division with the best score is not always the
best one."""
MAX_OUTSIDE_SHARE = 0.5
"""The segments are considered useless if more than this share of the saved bytes lies outside all of them."""


class SegmentSource(Enum):
    """The source of the segments of a step.

    Attributes:
        USER: Segments that the user defines, by attributes or by a selection that leaves no choice. Attempts differ
            only in how they copy these segments. Marks on single operations are not a source, because they apply in
            every attempt.
        NAMES: The scopes of the step. The search may also divide the step in other ways.
        STRUCTURE: The structure of a step without scopes.
    """

    USER = auto()
    NAMES = auto()
    STRUCTURE = auto()


def attempts_at(step: Step, selection: Selection, named: Mapping[Operation, str] | None) -> Iterator[Attempt]:
    """Yield the attempts at dividing a step, the most promising ones first.

    If the named segments contain most of the saved bytes, only a few divisions by structure are tried (`STRUCTURES`).

    Args:
        step: The step.
        selection: The user's selection.
        named: The segment of each operation according to its scope; None if the selection itself lists segments or
            checkpoints.
    """
    source = _segment_source(step, selection, named or {})
    structures = None
    if source is SegmentSource.NAMES:
        outside, saved = saved_outside(step, set(step.positions(named or {})))
        if outside <= MAX_OUTSIDE_SHARE * saved:
            structures = STRUCTURES + (len(step.graph) < MANY_OPERATIONS)
    return attempts_for(step.graph, source, selection.segment_count, structures)


def _segment_source(step: Step, selection: Selection, named: Collection[Operation]) -> SegmentSource:
    operations = step.phases.order.operations
    is_restricted = (
        selection.segments != "auto" or selection.checkpoints is not None or selection.skip or selection.outputs
    )
    if is_restricted or any(Names.SEGMENT in op.attributes for op in operations):
        return SegmentSource.USER
    return SegmentSource.NAMES if named else SegmentSource.STRUCTURE


def attempts_for(
    graph: Graph, source: SegmentSource, segment_count: int = 0, structures: int | None = None
) -> Iterator[Attempt]:
    """Yield the attempts at dividing a step whose segments have the given source, the most promising ones first.

    If the search may divide the step in other ways, several ways of copying named segments are tried only for steps
    with fewer than `MANY_OPERATIONS` operations.

    Args:
        graph: The graph of the step.
        source: The source of the segments.
        segment_count: The number of segments that the user requests; 0 if the search chooses the number.
        structures: The maximum number of divisions by structure; None for all.
    """
    is_small = len(graph) < MANY_OPERATIONS
    if source is not SegmentSource.STRUCTURE:
        yield DEFAULT_ATTEMPT
        if source is SegmentSource.USER or is_small:
            yield Attempt(splits_only_concurrent=False)
    if source is SegmentSource.USER:
        return
    if segment_count:
        if source is SegmentSource.STRUCTURE:
            cuts = cut_into(graph, segment_count)
            yield DEFAULT_ATTEMPT if cuts is None else Attempt.with_cuts(cuts)
        return
    if source is SegmentSource.NAMES and is_small:
        yield Attempt(Segmentation(own_outputs=True))
    if (whole := single_segment(graph)) is not None:
        yield Attempt.with_cuts(whole)
    divisions = [cuts_by_blocks(graph), *cuts_by_structure(graph)[:structures]]
    by_structure = [cuts for cuts in divisions if cuts is not None]
    yield from map(Attempt.with_cuts, by_structure)
    if source is SegmentSource.STRUCTURE and not by_structure:
        yield DEFAULT_ATTEMPT


def saved_outside(step: Step, inside: Set[int]) -> tuple[int, int]:
    """Return the bytes that operations outside `inside` save for the backward pass, and the bytes that all operations
    save for it."""
    graph = step.graph
    read = (value for op, makes in enumerate(graph.makes) if graph.forward[op] for value in makes)
    roots = {graph.root[value] for value in read if graph.gradient_readers[value]} - graph.constants
    computed_roots = [root for root in roots if graph.maker[root] >= 0]
    outside = [root for root in computed_roots if graph.maker[root] not in inside]
    return sum(graph.sizes[root] for root in outside), sum(graph.sizes[root] for root in computed_roots)
