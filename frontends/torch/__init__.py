"""`recompute.torch`: compile training steps as `torch.compile` does, with a lower memory peak.

    step = recompute.torch.compile(model, budget="8GiB")  # instead of torch.compile
    step(batch).backward()
    print(step.report())

docs/torch.md describes the options, the warnings and the limits.
"""

from __future__ import annotations

from .compile import Backend, backend, compile
from .export import export
from .fx.unsupported import Unsupported
from .partition.options import Options
from .partition.partitioner import BudgetNotKept, Partitioner
from .regions import region
from .reports.compile_report import CompileReport, GraphReport
from .reports.warning import NothingSaved

Report = CompileReport
"""An alias of `CompileReport`: `recompute.jax` calls its reports `Report`."""

__all__ = [
    "Backend",
    "BudgetNotKept",
    "CompileReport",
    "GraphReport",
    "NothingSaved",
    "Options",
    "Partitioner",
    "Unsupported",
    "backend",
    "compile",
    "export",
    "region",
]
