"""Thresholds for the comparison of plans that several modules share, each with its reason, and the comparisons of two
peaks."""

from __future__ import annotations

EAGER_SHARE = 1.10
"""Multiple of the peak in program order up to which the peak of the eager schedule is acceptable. Above it, copy groups
are chained."""

BATCH_SHARE = 0.25
"""Share of the bytes that a group frees which a separate batch must delay: its barrier prevents fusion. The same holds
for a barrier before a part of a segment in the forward pass."""

BATCH_CANDIDATES = 32
"""Maximum number of parts of a segment that are considered for a batch, so that the work is linear in its size."""

NEARLY_ALL = 0.9
"""Share of the forward operations from which a scope counts as the whole model, not as one of its blocks."""

MOST_SEGMENTS = 40
"""Maximum number of segments for a forward pass without names. More are rarely better, and cuts are computed for each
number."""

STRUCTURES = 3
"""Number of cuts by structure that are tried in addition to named segments: the score is an estimate, and its best cut
is not always the best."""

MANY_OPERATIONS = 2000
"""Number of operations of a step from which named segments are copied in one way only. Of 89 such steps, on the
examples and benchmarks, none needs more bytes for that, and two need less; each way takes a tenth of the whole pass."""

WORTH_IT = 0.01
"""Share of the peak that an automatic choice must save to be applied: barriers and copies have a cost. A rise of the
peak by a smaller share does not rule out a choice."""

AS_GOOD = 1.02
"""Factor between two peaks up to which the model of XLA:CPU cannot rank attempts."""

CLEARLY_MORE = 1.3
"""Factor above the lowest peak in program order from which the model of XLA:CPU does not evaluate a candidate of a step
with `MANY_OPERATIONS`. Of 89 choices for such steps, on the examples and benchmarks, this changes none."""

BLOCK_GAINS = 0.88
"""As `STRUCTURE_GAINS`, for segments by structure that replace repeated blocks without names."""

STRUCTURE_GAINS = 0.8
"""Segments by structure replace named ones if the ratio of their peaks by the model of XLA:CPU, squared, times the
ratio in program order, is below this: the model errs by about 7 % between programs that differ this much. On 32 steps
this is as good on average as trusting the model, and much better in the worst case."""

ATTEMPTS = 7
"""Number of plans of a step that are forecast; the model of XLA:CPU evaluates the plans that can win."""

MOSTLY = 0.5
"""Share of the saved bytes outside all segments above which the segments are considered useless."""


def is_worth_it(before: int, after: int) -> bool:
    """Return whether a choice that takes a peak from `before` to `after` saves enough to be applied: more than
    `WORTH_IT`."""
    return after < before * (1 - WORTH_IT)


def raises_peak(before: int, after: int) -> bool:
    """Return whether a peak rises from `before` to `after` by more than `WORTH_IT`, which rules out a choice."""
    return after > before * (1 + WORTH_IT)
