"""Partition a joint graph: import, rewrite, export and prove it, then split it with the default partitioner.

AOTAutograd calls a partitioner with the joint graph of a step, and compiles the two graphs that it returns. A graph
that this frontend cannot handle is left to PyTorch's own partitioner, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import torch
from functorch.compile import default_partition

from ....driver.verification.verified import NotProved
from ....search.limits import bytes_left
from ....support.diagnostics import Refusal
from ....support.garbage import no_collection
from ....support.units import is_share
from ..fx.halves import Halves
from ..fx.importer import read_joint
from ..fx.unsupported import Unsupported
from ..reports.compile_report import GraphReport, report_of_fallback
from ..reports.warning import warn_plain
from .budget_rewrites import rewrite
from .graph_reports import report_of, report_unchanged
from .joint_graph_step import JointStep
from .options import Options

Partition = Callable[..., Halves]
NO_BACKWARD = "its backward pass has no operations, so no value is saved for it"
"""The reason why a graph is left to PyTorch's partitioner without a warning."""


class BudgetNotKept(RuntimeError):
    """Raised if no plan meets the budget. The message gives the lowest peak that was reached."""


@dataclass
class Partitioner:
    """A partition function for AOTAutograd that reports on each partitioned graph.

    Attributes:
        options: The user's options.
        fallback: The partitioner for graphs that are not rewritten.
        reports: The reports on the graphs, in the order of compilation.
    """

    options: Options
    fallback: Partition = default_partition
    reports: list[GraphReport] = field(default_factory=list[GraphReport])

    @no_collection()
    def __call__(self, joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **keywords: Any) -> Halves:
        """Rewrite and split a joint graph.

        `keywords`: the keywords of the default partitioner. They depend on the version of PyTorch. Raises
        `BudgetNotKept` for a budget that no plan meets.
        """
        start = perf_counter()
        try:
            module = read_joint(joint, num_fwd_outputs, marked=self.options.budget is None)
            step = JointStep(module, joint, inputs, num_fwd_outputs, keywords)
            halves, report = self.partition(step) if step.has_backward else self._without_backward(step)
        except BudgetNotKept:
            raise
        except (Unsupported, Refusal, NotProved) as error:
            if isinstance(error, Refusal) and self.options.budget is not None:
                raise BudgetNotKept(error.reason) from error
            if isinstance(error, Refusal) and self.options.rewrite.strict:
                raise
            return self._fall_back(error, joint, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)
        except Exception as error:
            # An internal error must not stop a step that would run without this package.
            if self.options.rewrite.strict or self.options.rewrite.planner:
                raise
            internal = Unsupported("internal error", f"{type(error).__name__}: {error}; please report it")
            return self._fall_back(internal, joint, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)
        self.reports.append(replace(report, seconds=perf_counter() - start))
        return halves

    def partition(self, step: JointStep) -> tuple[Halves, GraphReport]:
        """Rewrite and split the step. Return its halves and the report.

        Raises `Refusal`, `NotProved` or `Unsupported`.
        """
        rewritten = rewrite(step, self.options)
        return step.split(rewritten), report_of(step, rewritten)

    def _without_backward(self, step: JointStep) -> tuple[Halves, GraphReport]:
        """Split a step whose backward pass has no operations, such as the gradient of a sum.

        Such a step saves no values. Raises `BudgetNotKept` if the step needs more than a budget in bytes. A budget that
        is a share is ignored, since most such graphs are small graphs between two graph breaks.
        """
        report = replace(report_unchanged(step), reason=NO_BACKWARD)
        budget = self.options.budget
        if budget is not None and not is_share(budget):
            limit = bytes_left(budget, report.peak_bytes, report.input_bytes)
            if limit is not None and report.peak_bytes > limit:
                limit_bytes, needed_bytes = (size + report.input_bytes for size in (limit, report.peak_bytes))
                raise BudgetNotKept(
                    f"no plan within {limit_bytes} bytes: {NO_BACKWARD}, and the step needs {needed_bytes} bytes"
                )
        halves = self.fallback(step.joint, step.inputs, num_fwd_outputs=step.num_fwd_outputs, **step.keywords)
        return halves, report

    def _fall_back(self, error: Unsupported | Refusal | NotProved, *arguments: Any, **keywords: Any) -> Halves:
        warn_plain(error)
        self.reports.append(report_of_fallback(error))
        return self.fallback(*arguments, **keywords)
