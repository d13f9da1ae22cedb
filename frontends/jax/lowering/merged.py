"""Merge the copies of a step's own `jax.checkpoint` into their originals, and select other operations to recompute."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ....dialects.cloning import clone_of
from ....dialects.mark_calls import NAME, is_named_as_mark
from ....driver.api import rewrite
from ....driver.rewrites.rewritten import Rewritten
from ....driver.verification.verified import NotProved
from ....options.recompute_options import RecomputeOptions
from ....options.selection import AUTO
from ....support.diagnostics import Refusal
from ....support.operations import every_operation
from ....transforms.merge_remat import is_of_remat
from ....transforms.take_scopes import take_scopes


def merged(module: ModuleOp | None, request: RecomputeOptions) -> Rewritten | None:
    """Merge the copies of a step's own `jax.checkpoint`, rewrite the step, and prove the result equal to the original.

    Return None if merging, rewriting or the proof fails. Also return None if options or marks in the step select the
    operations to recompute, because merging would override them.

    Args:
        module: The step; None if it could not be read.
        request: The options of the rewrite.
    """
    if module is None or (options := merging_options(module, request)) is None:
        return None
    try:
        return rewrite(module, replace(options, strict=False))
    except (Refusal, NotProved):
        return None


def merging_options(module: ModuleOp, request: RecomputeOptions) -> RecomputeOptions | None:
    """Return the options that merge the copies of the step's own `jax.checkpoint` into their originals.

    Return None if there are no such copies, or if options or marks in the step select the operations to recompute.
    """
    if selects_segments(request) or not any(map(is_of_remat, every_operation(module))):
        return None
    try:
        return None if _is_marked(module) else replace(request, merge_remat=True)
    except Refusal:
        return None


def selects_segments(request: RecomputeOptions) -> bool:
    """Return whether the options select segments or give a plan. A policy selects no segments, because it applies to
    any choice of segments."""
    if any(choice is not None for choice in (request.plan, request.planner, request.pipeline)):
        return True
    return request.selection.segments != AUTO.segments or request.selection.checkpoints is not None


def _is_marked(module: ModuleOp) -> bool:
    """Return whether the step has marks or marked calls; names are not marks. Raises `Refusal` for invalid marks."""
    marks = [op for op in every_operation(module) if is_named_as_mark(op)]
    return any(op.call_target_name.data != NAME for op in marks) or take_scopes(clone_of(module)) > 0
