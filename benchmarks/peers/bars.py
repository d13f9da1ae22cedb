"""Bars of the comparison: with the same blocks, no more memory and work than the framework's remat, and equal
donation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recompute.benchmarks.peers.forms import OURS, PLAIN, SAME, SAME_DOTS, THEIRS, THEIRS_DOTS

TEMP_BAR, FLOPS_BAR = 1.02, 1.005
"""The largest temporaries and FLOPs with the same blocks, as multiples of those of remat."""
PAIRS = ((SAME, THEIRS), (SAME_DOTS, THEIRS_DOTS))

Costs = Mapping[str, Mapping[str, Any]]


def ratio(costs: Costs, form: str, base: str, field: str = "temp_bytes") -> float | None:
    """Return the ratio of two forms, or None if a form failed or the divisor is zero."""
    if form not in costs or base not in costs or not costs[base][field]:
        return None
    return costs[form][field] / costs[base][field]


def missed(costs: Costs) -> Iterator[str]:
    """Describe the bars that are missed. `costs`: measurements by form, with one setting."""
    for ours, theirs in PAIRS:
        if ours not in costs or theirs not in costs:
            continue  # It failed, which is reported with its error, or was not requested.
        reason = f" ({costs[ours]['why']})" if costs[ours].get("why") else ""
        for field, bar, word in (("temp_bytes", TEMP_BAR, "temporaries"), ("flops", FLOPS_BAR, "FLOPs")):
            result = ratio(costs, ours, theirs, field)
            if result is not None and result > bar:
                yield f"{ours}: {result:.3f} × the {word} of {theirs}, bar {bar}{reason}"
    for form in (SAME, SAME_DOTS, OURS):
        if form in costs and costs[form]["alias_bytes"] != costs[PLAIN]["alias_bytes"]:
            yield f"{form}: {costs[form]['alias_bytes']} bytes donated, plain {costs[PLAIN]['alias_bytes']}"
