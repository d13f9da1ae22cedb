"""Attempts: ways to divide a step into segments and to copy these.

The search plans them and chooses by trust, then by memory (`search/best_attempt.py`). *Candidates* are the plans that a
budget compares: plans of attempts, plans of the solvers, and parts of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...options.selection import Selection
from ...planning.by_segment.by_structure import CutMethod, Cuts, cut_into, cuts_by_blocks, cuts_by_structure, uncut
from ...planning.graph import Graph

MANY_OPERATIONS = 2000
"""Number of operations of a step from which named segments are copied in one way only. Of 89 such steps, on the
examples and benchmarks, none needs more bytes for that, and two need less; each way takes a tenth of the whole pass."""


@dataclass(frozen=True)
class Attempt:
    """A division of a step into segments, with the options for copying them.

    Attributes:
        cuts: The segments that the graph's structure suggests; None for named segments.
        own_outputs: Recompute the outputs of a segment for the segment's own gradient, and keep them for all other
            readers.
        splits_only_concurrent, chain: See `GroupOptions`.
        each_pass: See `CloneOptions`.
        policy: The policy for the values that are saved inside segments; "" for the policy of the selection.
    """

    cuts: Cuts | None = None
    own_outputs: bool = False
    splits_only_concurrent: bool = True
    chain: bool = False
    each_pass: bool = False
    policy: str = ""

    @property
    def kind(self) -> AttemptKind:
        """The attempt without the places of its cuts."""
        cuts = self.cuts
        return AttemptKind(cuts and cuts.method, cuts and cuts.segment_count, replace(self, cuts=None))

    def __str__(self) -> str:
        return str(self.kind)


@dataclass(frozen=True)
class AttemptKind:
    """The properties of an attempt by which remarks describe it; attempts of one kind have cuts at different places.

    Attributes:
        cut_method: The method that placed the cuts; None for named segments.
        segment_count: The number of segments; None for named segments.
        copying: The attempt without its cuts.
    """

    cut_method: CutMethod | None
    segment_count: int | None
    copying: Attempt

    def __str__(self) -> str:
        variations = [
            "outputs again for their own gradient" * self.copying.own_outputs,
            "in two stages" * (not self.copying.splits_only_concurrent),
            "one after the other" * self.copying.chain,
            "again in each backward pass" * self.copying.each_pass,
            self.copying.policy and f"{self.copying.policy} inside",
        ]
        return ", ".join([self._segments, *filter(None, variations)])

    @property
    def _segments(self) -> str:
        if self.cut_method is None:
            return "named segments"
        if self.segment_count == 1:
            return "all as one segment"
        return f"{self.segment_count} segments by {self.cut_method.value}"


DEFAULT_ATTEMPT = Attempt()


def attempts_for(
    graph: Graph, selection: Selection, named: bool, stated: bool, structures: int | None = None
) -> Iterator[Attempt]:
    """Yield the attempts, the most promising ones first.

    If the user defines the segments, only the way of copying them varies. If the search may divide the step
    differently, it varies only for steps of fewer than `MANY_OPERATIONS`.

    Args:
        graph: The graph of the step.
        selection: The user's selection.
        named: Whether the step has named segments.
        stated: Whether operations have attributes for their segment or for recomputation.
        structures: The maximum number of divisions by structure; None for all.
    """
    may_divide = not stated and _lets_search_choose(selection)
    varied = not may_divide or len(graph) < MANY_OPERATIONS
    if named or not may_divide:
        yield DEFAULT_ATTEMPT
        if varied:
            yield Attempt(splits_only_concurrent=False)
    if may_divide and selection.segment_count:
        if not named:
            cuts = cut_into(graph, selection.segment_count)
            yield DEFAULT_ATTEMPT if cuts is None else Attempt(cuts)
    elif may_divide:
        if named and varied:
            yield Attempt(own_outputs=True)
        if (whole := uncut(graph)) is not None:
            yield Attempt(whole)
        divisions = [cuts_by_blocks(graph), *cuts_by_structure(graph)[:structures]]
        by_structure = [cuts for cuts in divisions if cuts is not None]
        yield from (Attempt(cuts) for cuts in by_structure)
        if not named and not by_structure:
            yield DEFAULT_ATTEMPT


def _lets_search_choose(selection: Selection) -> bool:
    """Return whether the selection leaves the choice of segments to the search."""
    is_restricted = (
        selection.segments != "auto" or selection.checkpoints is not None or selection.skip or selection.outputs
    )
    return not is_restricted
