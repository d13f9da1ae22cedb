"""Every threshold by which plans are judged, each with its reason."""

from __future__ import annotations

EAGER_SHARE = 1.10
"""Above this share of the peak in program order an executor that starts what it can loses too much of the saving: copy
groups are chained then (R8)."""

BATCH_SHARE = 0.25
"""A barrier keeps a compiler from fusing across it. A batch of its own is worth it where it holds back at least this
share of the bytes that the group frees; so is holding a part of a segment back in the forward pass."""

BATCH_CANDIDATES = 32
"""How many parts of a segment are looked at for a batch of their own: the work stays in proportion to the segment."""

NEARLY_ALL = 0.9
"""One scope around this share of the forward operations is the model, not one of its blocks."""

MOST_SEGMENTS = 40
"""Into at most so many segments a forward pass is cut where nothing names its parts: more are hardly ever better, and
the cuts of each number are looked at."""

STRUCTURES = 3
"""How many cuts by structure are tried beside named segments: the best by score, which is an estimate, is not always
the best."""

WORTH_IT = 0.01
"""A choice of ours that saves a smaller share of the peak than this is not carried out: barriers and copies cost more.
A peak that rises by less is no reason against one."""

AS_GOOD = 1.02
"""The model of XLA:CPU does not tell attempts apart whose peaks differ by less than this share."""

BLOCK_GAINS = 0.88
"""As `STRUCTURE_GAINS`, for segments by structure in the place of repeated blocks that have no names."""

STRUCTURE_GAINS = 0.8
"""Segments by structure take the place of named ones where the share of the peak that they need, by the model of
XLA:CPU, squared, times the share in program order, is below this: between programs so unlike the model errs by a tenth.
On 32 steps that is as good on average as to believe it, and much better at worst."""

ATTEMPTS = 7
"""How many plans of a step the model of XLA:CPU is asked for: each takes about a tenth of the whole pass."""

MOSTLY = 0.5
"""Where more than this share of what is saved lies outside of every segment, the segments miss the point."""
