"""The requirements of the comparison. With the same blocks, the recomputed step must need no more memory or FLOPs than
the step with the framework's remat, and it must donate as many bytes as the plain step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recompute.benchmarks.peers.peer_forms import OURS, PLAIN, SAME, SAME_DOTS, THEIRS, THEIRS_DOTS

TEMP_BAR, FLOPS_BAR = 1.02, 1.005
"""The largest allowed temporaries and FLOPs with the same blocks, as multiples of remat's."""
PAIRS = ((SAME, THEIRS), (SAME_DOTS, THEIRS_DOTS))

Costs = Mapping[str, Mapping[str, Any]]


def ratio(costs: Costs, form: str, base: str, field: str = "temp_bytes") -> float | None:
    """Return the cost of `form` divided by the cost of `base`, or None if a variant failed or the divisor is zero."""
    if form not in costs or base not in costs or not costs[base][field]:
        return None
    return costs[form][field] / costs[base][field]


def missed(costs: Costs) -> Iterator[str]:
    """Yield a message for each requirement that is not met. `costs`: the measurements of one setting, by variant."""
    for ours, theirs in PAIRS:
        if ours not in costs or theirs not in costs:
            continue  # The form was not requested, or it failed and its error is reported elsewhere.
        reason = f" ({costs[ours]['why']})" if costs[ours].get("why") else ""
        for field, bar, word in (("temp_bytes", TEMP_BAR, "temporaries"), ("flops", FLOPS_BAR, "FLOPs")):
            result = ratio(costs, ours, theirs, field)
            if result is not None and result > bar:
                yield f"{ours}: {result:.3f} × the {word} of {theirs}, above the limit of {bar}{reason}"
    for form in (SAME, SAME_DOTS, OURS):
        if form in costs and costs[form]["alias_bytes"] != costs[PLAIN]["alias_bytes"]:
            donated, plain = costs[form]["alias_bytes"], costs[PLAIN]["alias_bytes"]
            yield f"{form}: {donated} bytes donated, but the plain step donates {plain}"
