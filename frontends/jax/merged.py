"""Merge the copies of a step's own `jax.checkpoint` back (CSE), so that a new set of operations can be recomputed."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ...dialects.mark_calls import NAME, is_named_as_mark
from ...driver.api import Rewritten, rewrite
from ...driver.verified import NotProved
from ...options.recompute_options import RecomputeOptions
from ...options.selection import AUTO
from ...support.diagnostics import Refusal
from ...support.operations import every_operation
from ...transforms.merge_remat import is_of_remat
from ...transforms.take_scopes import take_scopes


def merged(module: ModuleOp | None, request: RecomputeOptions) -> Rewritten | None:
    """Return the step merged and rewritten, proved equal to the original module; None if that fails.

    None too if the options or marks in the step select what is recomputed: merging would override them.
    """
    if module is None or _selects_places(request) or not any(map(is_of_remat, every_operation(module))):
        return None
    try:
        if _is_marked(module):
            return None
        return rewrite(module, replace(request, merge_remat=True, strict=False))
    except (Refusal, NotProved):
        return None


def _selects_places(request: RecomputeOptions) -> bool:
    """Return whether the options select where operations are recomputed. A policy does not: it applies to any
    segment."""
    if any(choice is not None for choice in (request.plan, request.planner, request.pipeline)):
        return True
    return request.selection.segments != AUTO.segments or request.selection.checkpoints is not None


def _is_marked(module: ModuleOp) -> bool:
    """Return whether the step has marks or marked calls; names select nothing. Raises `Refusal` for invalid marks."""
    marks = [op for op in every_operation(module) if is_named_as_mark(op)]
    return any(op.call_target_name.data != NAME for op in marks) or take_scopes(module.clone()) > 0
