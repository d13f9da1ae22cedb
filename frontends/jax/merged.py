"""A step whose own `jax.checkpoint` is merged back, so that what is recomputed can be chosen anew."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ...dialects.marks import NAME, is_named_as_mark
from ...driver.api import Rewritten, rewrite
from ...driver.verified import NotProved
from ...options.recompute_options import RecomputeOptions
from ...options.selection import AUTO
from ...support.diagnostics import Refusal
from ...support.walk import every_operation
from ...transforms.merge_remat import is_of_remat
from ...transforms.take_scopes import take_scopes


def merged(module: ModuleOp | None, request: RecomputeOptions) -> Rewritten | None:
    """The step merged and rewritten, proved equal to the module as it came; None where that cannot be had.

    Nobody is overruled: there is none where the request or the step itself says what is recomputed.
    """
    if module is None or _says_what(request) or not any(map(is_of_remat, every_operation(module))):
        return None
    try:
        if _is_marked(module):
            return None
        return rewrite(module, replace(request, merge_remat=True, strict=False))
    except (Refusal, NotProved):
        return None


def _says_what(request: RecomputeOptions) -> bool:
    """Whether the options say where is recomputed; a policy says what is saved there, wherever it is."""
    if any(one is not None for one in (request.plan, request.planner, request.pipeline)):
        return True
    return request.selection.segments != AUTO.segments or request.selection.checkpoints is not None


def _is_marked(module: ModuleOp) -> bool:
    """Whether the step has marks, or calls that are marked; names choose nothing. Raises `Refusal` for wrong ones."""
    marks = [op for op in every_operation(module) if is_named_as_mark(op)]
    return any(op.call_target_name.data != NAME for op in marks) or take_scopes(module.clone()) > 0
