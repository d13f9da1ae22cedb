"""Ways in which a step may be cut and copied, as data: each is planned, and the one that needs least is carried out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...planning.by_segment.by_structure import Cuts, cuts_by_structure
from ...planning.graph import Graph
from ...planning.objective import STRUCTURES
from ..request.selection import Selection


@dataclass(frozen=True)
class Attempt:
    """cuts: segments by structure, in place of named ones. own_outputs: a segment computes its outputs again for its
    own gradient, while they are kept for everybody else. beside, chain: see `Copying`.
    """

    cuts: Cuts | None = None
    own_outputs: bool = False
    beside: bool = True
    chain: bool = False

    def __str__(self) -> str:
        segments = "named segments" if self.cuts is None else f"{len(self.cuts.bounds) - 1} segments by structure"
        said = [
            "outputs again for their own gradient" * self.own_outputs,
            "in two stages" * (not self.beside),
            "one after the other" * self.chain,
        ]
        return ", ".join([segments, *filter(None, said)])


FIRST = Attempt()


def attempts_for(graph: Graph, selection: Selection, named: bool) -> Iterator[Attempt]:
    """The attempts in the order in which they are worth a try. `named`: whether the step has segments of its own.

    What the user says of segments is not tried otherwise: only how they are copied is.
    """
    by_structure = cuts_by_structure(graph)[:STRUCTURES] if _is_open(selection) else []
    if named:
        yield FIRST
        if _is_open(selection):
            yield Attempt(own_outputs=True)
    yield from (Attempt(cuts) for cuts in by_structure)
    if named:
        yield Attempt(beside=False)


def _is_open(selection: Selection) -> bool:
    """Whether nothing is said of segments."""
    return selection.segments == "auto" and selection.checkpoints is None and not selection.skip and not selection.outputs
