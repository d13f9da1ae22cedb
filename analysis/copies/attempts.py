"""Ways in which a step may be cut and copied, as data: each is planned, and the one that needs least is carried out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...options.selection import Selection
from ...planning.by_segment.by_structure import Cuts, cut_into, cuts_by_blocks, cuts_by_structure, uncut
from ...planning.graph import Graph


@dataclass(frozen=True)
class Attempt:
    """cuts: segments by structure, in place of named ones. own_outputs: a segment computes its outputs again for its
    own gradient, while they are kept for everybody else. beside, chain, each_pass: see `Copying`.
    """

    cuts: Cuts | None = None
    own_outputs: bool = False
    beside: bool = True
    chain: bool = False
    each_pass: bool = False

    def __str__(self) -> str:
        segments = "named segments" if self.cuts is None else str(self.cuts)
        said = [
            "outputs again for their own gradient" * self.own_outputs,
            "in two stages" * (not self.beside),
            "one after the other" * self.chain,
            "again in each backward pass" * self.each_pass,
        ]
        return ", ".join([segments, *filter(None, said)])


FIRST = Attempt()


def attempts_for(
    graph: Graph, selection: Selection, named: bool, stated: bool, structures: int | None = None
) -> Iterator[Attempt]:
    """The attempts in the order in which they are worth a try.

    `named`: whether there are segments to be found by name; `stated`: whether operations say themselves which
    segment they are of, or that they are recomputed; `structures`: at most so many cuts by structure. What the user
    says of segments is not tried otherwise: only how they are copied is.
    """
    is_open = not stated and _is_open(selection)
    if named or not is_open:
        yield FIRST
        yield Attempt(beside=False)
    if is_open and selection.segment_count:
        if not named:
            cuts = cut_into(graph, selection.segment_count)
            yield FIRST if cuts is None else Attempt(cuts)
    elif is_open:
        if named:
            yield Attempt(own_outputs=True)
        if (whole := uncut(graph)) is not None:
            yield Attempt(whole)
        cuts = [cuts_by_blocks(graph), *cuts_by_structure(graph)[:structures]]
        by_structure = [each for each in cuts if each is not None]
        yield from (Attempt(each) for each in by_structure)
        if not named and not by_structure:
            yield FIRST


def _is_open(selection: Selection) -> bool:
    """Whether nothing is said of where segments are."""
    said = selection.segments != "auto" or selection.checkpoints is not None or selection.skip or selection.outputs
    return not said
