"""The partitioner that Inductor calls after its own passes over the joint graph.

Plans minimize or bound the peak in program order. Inductor fuses and reorders operations, so the compiled step has a
different peak. For a budget, the compiled step is therefore measured (`budget_search.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._inductor.custom_graph_pass import CustomPartitionerFn
from typing_extensions import override

from ..fx.halves import Halves
from ..partition.joint_graph_step import JointStep
from ..partition.options import Options
from ..partition.partitioner import Partitioner
from ..reports.compile_report import GraphReport
from .budget_search import partition_within
from .compiled_step import NotMeasured, why_not_run


class MeasuringPartitioner(Partitioner):
    """A partition function for Inductor that makes the compiled step meet the budget."""

    @override
    def partition(self, step: JointStep) -> tuple[Halves, GraphReport]:
        step = replace(step, for_inductor=True)
        if self.options.budget is None:
            return super().partition(step)
        reason = why_not_run(step.joint)
        if reason is None:
            try:
                return partition_within(step, self.options)
            except NotMeasured as error:
                reason = str(error)
        halves, report = super().partition(step)
        return halves, replace(report, unmeasured=reason)


class InductorPartitioner(CustomPartitionerFn):
    """The partitioner, with the interface that Inductor expects.

    The cache key of compiled code includes the version of this package and the options, so that no step runs with a
    plan for different options.
    """

    def __init__(self, options: Options):
        self.partitioner = MeasuringPartitioner(options, min_cut_rematerialization_partition)
        self._key = _key_of(options)

    @override
    def __call__(
        self, gm: torch.fx.GraphModule, joint_inputs: Sequence[object], **kwargs: Any
    ) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
        return self.partitioner(gm, joint_inputs, **kwargs)

    @override
    def uuid(self) -> str | None:
        """Return the cache key. Return None if the options contain a planner, since a planner cannot be hashed. None
        disables the cache.
        """
        return self._key

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # Caches pickle the configuration only to compare it, so the key suffices.
        return str, (self._key or "",)


def _key_of(options: Options) -> str | None:
    if options.rewrite.planner is not None:
        return None
    try:
        installed = version("xdsl-recompute")
    except PackageNotFoundError:
        installed = ""
    return sha256(f"{installed} {torch.__version__} {options!r}".encode()).hexdigest()
