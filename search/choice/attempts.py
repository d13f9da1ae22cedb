"""Attempts: ways to divide a step into segments and to copy the segments. A cut is a position at which the forward pass
is divided.

The search plans each attempt and chooses one by trust, then by memory (`search/choice/best_attempt.py`). *Candidates*
are the plans that a search under a budget compares: plans of attempts, plans of the solvers, and parts of both.
`proposed_attempts.py` lists the attempts at a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...planning.by_segment.by_structure import CutMethod, Cuts
from .segment_decisions import NAMED_SEGMENTS, Segmentation


@dataclass(frozen=True)
class Attempt:
    """A division of a step into segments, with the options for copying them.

    Attributes:
        segmentation: The segments, and the choice of their values that may be recomputed.
        splits_only_concurrent, chain: How copies are grouped, as in `GroupOptions`.
        each_pass: Whether to copy a segment again for each backward pass through it
            (`planning/by_segment/each_pass.py`).
        policy: The name of the policy that determines the values to save inside segments; "" for the policy of the
            selection.
    """

    segmentation: Segmentation = NAMED_SEGMENTS
    splits_only_concurrent: bool = True
    chain: bool = False
    each_pass: bool = False
    policy: str = ""

    @classmethod
    def with_cuts(cls, cuts: Cuts) -> Attempt:
        """Return an attempt that divides the forward pass into segments at the cuts."""
        return cls(Segmentation(cuts))

    def copying_variants(self) -> Iterator[Attempt]:
        """Yield attempts with the same cuts that copy the segments in different ways. Yield nothing for named segments,
        because `attempts_for` lists their variants."""
        if self.segmentation.cuts is not None:
            yield replace(self, segmentation=replace(self.segmentation, own_outputs=True))
            yield replace(self, splits_only_concurrent=False)

    @property
    def kind(self) -> AttemptKind:
        """The kind of the attempt. It does not contain the positions of the cuts."""
        cuts = self.segmentation.cuts
        copying = replace(self, segmentation=replace(self.segmentation, cuts=None))
        return AttemptKind(cuts and cuts.method, cuts and cuts.segment_count, copying)

    def __str__(self) -> str:
        return str(self.kind)


@dataclass(frozen=True)
class AttemptKind:
    """The properties of an attempt that remarks describe. Attempts of one kind differ only in the positions of their
    cuts.

    Attributes:
        cut_method: The method that placed the cuts; None for named segments.
        segment_count: The number of segments; None for named segments.
        copying: The attempt without its cuts, which describes how segments are copied.
    """

    cut_method: CutMethod | None
    segment_count: int | None
    copying: Attempt

    def __str__(self) -> str:
        variations = [
            "outputs again for their own gradient" * self.copying.segmentation.own_outputs,
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
        if self.cut_method is CutMethod.WHOLE:
            return "all as one segment"
        return f"{self.segment_count} segments by {self.cut_method.value}"


DEFAULT_ATTEMPT = Attempt()
