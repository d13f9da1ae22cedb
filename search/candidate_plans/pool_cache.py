"""Cache the pools of recent modules, so that searches for several budgets share their forecasts and measurements."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ...analysis.step.jax_paths import path_of
from ...analysis.step.phase_sources import PhaseSource, registered_sources, sources
from ...mlir_io.printer import print_module
from ...options.recompute_options import RecomputeOptions
from ...planning.solvers.result import Stop, never_stop
from ...rules.registry import BUILT_IN
from ...support.locations import LocationNumbers
from ...support.operations import every_operation, name_of
from .pool import Pool

MAX_CACHED_POOLS = 4
"""Maximum number of cached pools, since a pool holds the graphs and the plans of its module. The least recently used
pool is dropped first."""
_HOLDERS = {"builtin.module", "func.func"}


@dataclass(frozen=True)
class PoolKey:
    """The identity of a pool: everything on which its candidates depend.

    Attributes:
        module_digest: The digest of the module (`_digest`).
        options: The options that influence the candidates. The options of the budget are not among them, since searches
            for several budgets share a pool.
        phase_sources: The phase sources, including the ones that the user registers.
    """

    module_digest: str
    options: tuple[object, ...]
    phase_sources: tuple[PhaseSource, ...]


_pools: OrderedDict[PoolKey, Pool] = OrderedDict()


def pool_of(module: ModuleOp, options: RecomputeOptions, stop: Stop = never_stop) -> Pool:
    """Return the pool of a module from the cache, or make it and cache it. Raises `Refusal` in the same cases as
    `Pool.of`."""
    key = _key(module, options)
    if key is not None and key in _pools:
        _pools.move_to_end(key)
        return _pools[key]
    pool = Pool.of(module, options, stop)
    if key is not None and not stop():
        _pools[key] = pool
        while len(_pools) > MAX_CACHED_POOLS:
            _pools.popitem(last=False)
    return pool


def forget_pools() -> None:
    """Empty the cache of pools."""
    _pools.clear()


def _key(module: ModuleOp, options: RecomputeOptions) -> PoolKey | None:
    """Return the cache key; None if the candidates depend on a cost file or on registered rules, so that they must not
    be cached."""
    names = set(map(name_of, every_operation(module)))
    declared = not names <= BUILT_IN.keys() | _HOLDERS
    if declared or Path(options.cost).exists():
        return None
    relevant = options.selection, options.copies, options.emission, options.loop_schedule, options.cost, options.moves
    return PoolKey(_digest(module), relevant, tuple(sources()))


def _digest(module: ModuleOp) -> str:
    """Return a digest of the module. Modules with the same digest have the same candidates.

    Candidates depend on the paths in locations, and on which operations share a location. They do not depend on the
    positions in locations, which include the caller of the step: the same step is often called from a different line,
    with a different budget. However, positions are included if the user has registered a phase source, because it may
    read them.
    """
    if registered_sources():
        return sha256(print_module(module, debuginfo=True).encode()).hexdigest()
    digest = sha256(print_module(module).encode())
    numbers = LocationNumbers()
    paths = dict[int, str]()
    for op in every_operation(module):
        number = numbers.number_of(op.location)
        if number not in paths:
            paths[number] = path_of(op.location)
        digest.update(f"{number} {paths[number]}\n".encode())
    return digest.hexdigest()
