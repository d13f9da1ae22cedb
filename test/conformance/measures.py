"""Measurements that are compared between a real system and this project, for a net with and without recomputation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Reasons: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Measures:
    """Measurements as pairs (plain, recomputed); None if unavailable, with the reason in `why_not` under the field's
    name.

    Attributes:
        gates, empty_gates: Number of tokens for which copies wait; an empty one delays nothing.
        held: Number of forward values that the backward pass reads.
        gradient_change: Largest change of a gradient by recomputation, relative to the largest gradient.
        running_stat_error: Largest change of a running statistic, absolute.
    """

    version: str = ""
    clones: int | None = None
    clones_after_cse: int | None = None
    gates: int | None = None
    empty_gates: int | None = None
    held: tuple[int, int] | None = None
    peak_bytes: tuple[int, int] | None = None
    gradient_change: float | None = None
    mask_mismatches: int | None = None
    running_stat_error: float | None = None
    results: tuple[Array, ...] = ()
    why_not: Reasons = field(default_factory=dict[str, str])


def relative_change(before: Sequence[Array], after: Sequence[Array]) -> float | None:
    """Return the largest difference between two lists of arrays, relative to the largest element of the first one."""
    pairs = [
        (first.astype(np.float64), other.astype(np.float64).reshape(first.shape))
        for first, other in zip(before, after, strict=True)
    ]
    pairs = [(first, other) for first, other in pairs if first.size]
    if not pairs:
        return None
    return max(largest(other - first) / (largest(first) or 1.0) for first, other in pairs)


def absolute_change(before: Sequence[Array], after: Sequence[Array]) -> float:
    return max((largest(other - first) for first, other in zip(before, after, strict=True)), default=0.0)


def largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))


# Labels of the table, in its order, with how a value is written.
ROWS: dict[str, str] = {
    "clones": "copies",
    "clones_after_cse": "copies left by a later CSE",
    "gates": "gates",
    "empty_gates": "gates that wait for nothing",
    "held": "values saved, plain and recomputed",
    "peak_bytes": "peak, plain and recomputed",
    "gradient_change": "change of loss and gradients by recomputing",
    "mask_mismatches": "masks that differ between value and gradient",
    "running_stat_error": "error of the running statistics",
}


def shown(measures: Measures, name: str) -> str:
    value: Any = getattr(measures, name)
    if value is None:
        reason = measures.why_not.get(name, measures.why_not.get("", ""))
        return f"n/a: {reason}" if reason else "n/a"
    if name == "peak_bytes":
        return " → ".join(f"{number / 2**20:.4g} MiB" if number >= 2**20 else f"{number} B" for number in value)
    if name == "held":
        return " → ".join(str(number) for number in value)
    return f"{value:.2g}" if isinstance(value, float) else str(value)
