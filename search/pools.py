"""A cache of the candidates of recent steps, so that several budgets on one step share them.

Candidates and their forecasts do not depend on the budget. They refer to a step by numbers, and each plan is checked
against the step when it is applied.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ..analysis.step.phase_sources import sources
from ..mlir_io.printer import print_module
from ..options.recompute_options import RecomputeOptions
from ..planning.solvers.result import Stop, never
from ..rules.names import name_of
from ..rules.registry import BUILT_IN
from ..support.walk import every_operation
from .candidates import Candidate, candidates

MOST = 4
"""Size of the cache."""
_HOLDERS = {"builtin.module", "func.func"}
_pools: OrderedDict[object, tuple[Candidate, ...]] = OrderedDict()


def pool_of(module: ModuleOp, options: RecomputeOptions, stop: Stop = never) -> Sequence[Candidate]:
    """The result of `candidates`, cached by the text of the module. Raises `Refusal` as that does."""
    key = _key(module, options)
    if key is not None and key in _pools:
        _pools.move_to_end(key)
        return _pools[key]
    pool = tuple(candidates(module, options, stop))
    if key is not None and not stop():
        _pools[key] = pool
        while len(_pools) > MOST:
            _pools.popitem(last=False)
    return pool


def forget_pools() -> None:
    """Empty the cache."""
    _pools.clear()


def _key(module: ModuleOp, options: RecomputeOptions) -> object | None:
    """The cache key; None where the candidates depend on a file of costs or on registered rules."""
    names = set(map(name_of, every_operation(module)))
    declared = not names <= BUILT_IN.keys() | _HOLDERS
    if declared or Path(options.cost).exists():
        return None
    text = sha256(print_module(module, debuginfo=True).encode()).hexdigest()
    relevant = options.selection, options.copies, options.emission, options.loops, options.cost, options.moves
    return text, relevant, tuple(sources())
