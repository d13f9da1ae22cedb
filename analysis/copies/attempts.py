"""Candidates for the segments of a step and for their copies, as data. All are planned; the one with the lowest peak is
applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...options.selection import Selection
from ...planning.by_segment.by_structure import CutMethod, Cuts, cut_into, cuts_by_blocks, cuts_by_structure, uncut
from ...planning.graph import Graph


@dataclass(frozen=True)
class Attempt:
    """A candidate: how the step is divided into segments, and how they are copied.

    cuts: segments by structure; None for named segments.
    own_outputs: a segment recomputes its outputs for its own gradient, while they are kept for all other readers.
    beside, chain: see `GroupOptions`. each_pass: see `CloneOptions`.
    """

    cuts: Cuts | None = None
    own_outputs: bool = False
    beside: bool = True
    chain: bool = False
    each_pass: bool = False

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
            "in two stages" * (not self.copying.beside),
            "one after the other" * self.copying.chain,
            "again in each backward pass" * self.copying.each_pass,
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
    """Yield the candidates, the most promising ones first.

    Args:
        named: whether the step has segments with names.
        stated: whether operations have attributes for their segment or for recomputation.
        structures: the maximum number of cuts by structure; None for all.

    Segments that the user states are not varied; only the copying of them is.
    """
    is_open = not stated and _is_open(selection)
    if named or not is_open:
        yield DEFAULT_ATTEMPT
        yield Attempt(beside=False)
    if is_open and selection.segment_count:
        if not named:
            cuts = cut_into(graph, selection.segment_count)
            yield DEFAULT_ATTEMPT if cuts is None else Attempt(cuts)
    elif is_open:
        if named:
            yield Attempt(own_outputs=True)
        if (whole := uncut(graph)) is not None:
            yield Attempt(whole)
        candidates = [cuts_by_blocks(graph), *cuts_by_structure(graph)[:structures]]
        by_structure = [cuts for cuts in candidates if cuts is not None]
        yield from (Attempt(cuts) for cuts in by_structure)
        if not named and not by_structure:
            yield DEFAULT_ATTEMPT


def _is_open(selection: Selection) -> bool:
    """Return whether the selection leaves the segments open."""
    stated = selection.segments != "auto" or selection.checkpoints is not None or selection.skip or selection.outputs
    return not stated
