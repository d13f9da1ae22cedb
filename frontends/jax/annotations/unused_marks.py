"""Marks on values that no result of a step depends on. JAX removes such marks when it lowers the step.

Example:

    recompute.jax.save(h)        # its result is unused: nothing is marked
    h = recompute.jax.save(h)    # marked, if the loss depends on h
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax.extend import core, source_info_util
from xdsl.dialects.builtin import ModuleOp

from ....support.remarks import Remark, Topic
from .value_marks import LEAF_KINDS, MARK_NAME

_CORE: Any = core
_SOURCE: Any = source_info_util
"""Typed as `Any`, because the types of JAX are incomplete."""
_REASON = (
    "recompute.jax.{kind} has no effect: no result of the step depends on the value that it returns; use this value in "
    "place of its argument"
)


def unused_marks(traced: jax.stages.Traced) -> tuple[Remark, ...]:
    """Return a remark on each source line whose marks are all unused. A mark is unused if no result of the step depends
    on the marked value."""
    whole: Any = traced.jaxpr
    marks = list(_marks(whole.jaxpr))
    effective = {place for place, _, is_used in marks if is_used}
    return tuple(
        Remark(ModuleOp([]), _REASON.format(kind=kind), topic=Topic.NO_EFFECT, place=place)
        for place, kind, is_used in reversed(marks)
        if not is_used and place not in effective
    )


def _marks(jaxpr: Any) -> Iterator[tuple[str, str, bool]]:
    """Yield the place and the kind of each mark, and whether a result depends on it, from the last mark to the
    first."""
    used = {id(variable) for variable in jaxpr.outvars}
    for equation in reversed(jaxpr.eqns):
        is_used = bool(equation.effects) or any(id(variable) in used for variable in equation.outvars)
        if is_used:
            used.update(map(id, equation.invars))
        if equation.primitive.name == MARK_NAME:
            if equation.params["kind"] in LEAF_KINDS:
                yield _place_of(equation), equation.params["kind"], is_used
        elif is_used:
            for inner in _CORE.jaxprs_in_params(equation.params):
                yield from _marks(inner)


def _place_of(equation: Any) -> str:
    """Return the place of an equation in the user's code, such as `train.py:15:8`."""
    return str(_SOURCE.summarize(equation.source_info)).partition(" (")[0]
