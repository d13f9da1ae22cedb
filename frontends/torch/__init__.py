"""`recompute.torch`: `torch.compile` for training steps, in less memory.

    step = recompute.torch.compile(model, budget="8GiB")  # in place of torch.compile
    step(batch).backward()
    print(step.report())

docs/torch.md describes options, warnings and limits.
"""

from __future__ import annotations

from .compile import Backend, backend, compile
from .export import export
from .options import Options
from .partition import BudgetNotKept, Partitioner
from .regions import region
from .report import GraphReport, Report
from .unsupported import Unsupported
from .warning import NothingSaved

__all__ = [
    "Backend",
    "BudgetNotKept",
    "GraphReport",
    "NothingSaved",
    "Options",
    "Partitioner",
    "Report",
    "Unsupported",
    "backend",
    "compile",
    "export",
    "region",
]
