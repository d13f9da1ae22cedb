"""Read PyTorch's counters of graph breaks and cache hits, which explain why some steps have no report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch._dynamo.utils import counters

_KINDS = ("graph_break", "unimplemented")


def count_breaks() -> Counter[str]:
    """Count the graph breaks and skipped functions of this process, by reason."""
    every: Any = counters
    return Counter({_first_line(reason): count for kind in _KINDS for reason, count in every[kind].items()})


def breaks_since(before: Counter[str]) -> tuple[str, ...]:
    """Return the reasons counted since `before`. `torch._dynamo.reset()` does not reset the counters."""
    return tuple(count_breaks() - before)


def count_cached() -> int:
    """Count the steps that this process took from PyTorch's cache, with the plan of an earlier process."""
    every: Any = counters
    return every["aot_autograd"]["autograd_cache_hit"]


def _first_line(reason: str) -> str:
    title, *lines = reason.splitlines() or [""]
    explanation = next((line.partition(":")[2].strip() for line in lines if "Explanation:" in line), "")
    return f"{title}: {explanation}" if explanation else title
