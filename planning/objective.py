"""Thresholds for the evaluation of plans that several modules share, each with its reason."""

from __future__ import annotations

EAGER_SHARE = 1.10
"""Above this share of the peak in program order, the peak of the eager schedule loses too much of the saving: copy
groups are chained then."""

BATCH_SHARE = 0.25
"""A barrier prevents fusion across it. A separate batch is worthwhile if it delays at least this share of the bytes
that the group frees; the same holds for delaying a part of a segment in the forward pass."""

BATCH_CANDIDATES = 32
"""Maximum number of parts of a segment that are considered for a batch: the work stays proportional to the segment."""

NEARLY_ALL = 0.9
"""A scope that contains this share of the forward operations is the model, not one of its blocks."""

MOST_SEGMENTS = 40
"""Maximum number of segments for a forward pass without names: more are hardly ever better, and the cuts are computed
for each number."""

STRUCTURES = 3
"""Number of cuts by structure that are tried in addition to named segments: the score is an estimate, and its best cut
is not always the best."""

WORTH_IT = 0.01
"""An automatic choice that saves a smaller share of the peak than this is not applied: barriers and copies cost more.
A rise of the peak by less is no reason against a choice."""

AS_GOOD = 1.02
"""The model of XLA:CPU cannot distinguish candidates whose peaks differ by less than this factor."""

BLOCK_GAINS = 0.88
"""As `STRUCTURE_GAINS`, for segments by structure that replace repeated blocks without names."""

STRUCTURE_GAINS = 0.8
"""Segments by structure replace named ones if the ratio of their peaks by the model of XLA:CPU, squared, times the
ratio in program order, is below this: the model errs by a tenth between programs that differ so much. On 32 steps this
is as good on average as trusting the model, and much better in the worst case."""

ATTEMPTS = 7
"""Number of plans of a step that the model of XLA:CPU evaluates: each takes about a tenth of the whole pass."""

MOSTLY = 0.5
"""If more than this share of the saved bytes is outside of all segments, the segments are of no use."""
