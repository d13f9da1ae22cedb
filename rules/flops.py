"""Floating point operations per operation, counted as XLA's cost analysis does: a multiply-add is two."""

from __future__ import annotations

from xdsl.ir import Operation

from .counts import per_element
from .registry import facts_of

_ONE_EACH = per_element(1)


def flops(op: Operation) -> int:
    """FLOPs of one execution: what its facts say, otherwise one for each result element.

    Regions count as often as they run; the body of a loop whose trip count is not known counts once.
    """
    facts = facts_of(op)
    if facts is None:
        return _ONE_EACH(op)
    own = (facts.flops or _ONE_EACH)(op)
    return own + facts.body_runs(op) * _body_flops(op) if facts.body_runs is not None else own


def _body_flops(op: Operation) -> int:
    return sum(flops(inner) for region in op.regions for block in region.blocks for inner in block.ops)
