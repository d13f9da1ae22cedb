"""The disk cache of plans, with which a second process needs no search for the same step, options and versions.

    key:    the imported graph as MLIR with locations, the options, registrations, versions
    record: the plan as JSON, its peak, remarks, and the lower bound on its work

A stored plan is applied, exported and proved like any other plan, so the cache avoids only the search. A plan that does
not apply to the graph, or that yields a different peak, is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ....driver.cache.cache_keys import cache_key, options_key
from ....planning.plan import Optimality
from ....support.disk_cache import DiskCache, Entry, disk_cache
from ....support.fingerprint import NoFingerprint
from .options import Options


@dataclass(frozen=True)
class StoredPlan:
    """A plan and the results of its search.

    Attributes:
        plan: The plan as JSON.
        peak_bytes: The peak of the rewritten step in program order.
        remarks: The messages of the search's remarks.
        optimality: The plan's extra work and its lower bound; None if no bound is known.
    """

    plan: str
    peak_bytes: int
    remarks: tuple[str, ...]
    optimality: Optimality | None


@dataclass(frozen=True)
class PlanCache:
    """The cache entry for one step and its options. `key` and `disk` are None if caching is off for the step."""

    key: str | None = None
    disk: DiskCache | None = None

    @classmethod
    def of(cls, text: Callable[[], str], options: Options) -> PlanCache:
        """Return the cache entry for a step. `text`: a function that returns the step as MLIR.

        The entry caches nothing if caching is off, if the options have no key, or if they contain a plan.
        """
        disk = disk_cache()
        if disk is None or options.rewrite.plan is not None:
            return cls()
        try:
            of_options = options_key(options.rewrite)
        except NoFingerprint:
            return cls()
        return cls(cache_key("torch plan", text(), of_options, torch.__version__), disk)

    def get(self) -> StoredPlan | None:
        """Return the stored plan, or None if there is none or if it is damaged."""
        if self.key is None or self.disk is None or (entry := self.disk.get(self.key)) is None:
            return None
        return _plan_of(entry.record)

    def put(self, stored: StoredPlan) -> None:
        """Store a plan for later processes."""
        if self.key is not None and self.disk is not None:
            self.disk.put(self.key, Entry(asdict(stored)))


def _plan_of(record: Mapping[str, Any]) -> StoredPlan | None:
    try:
        optimality = None if record["optimality"] is None else Optimality(**record["optimality"])
        return StoredPlan(str(record["plan"]), int(record["peak_bytes"]), tuple(record["remarks"]), optimality)
    except (KeyError, TypeError, ValueError):
        return None
