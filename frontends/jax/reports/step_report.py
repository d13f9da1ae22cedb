"""The report on a plain and a rewritten step, which `compare_step.py` computes.

It covers memory, FLOPs, live values at the peak, saved values, and recomputed operations.

`print(report)` shows a summary, `report.details()` returns the whole text, and `report.save(path)` writes an HTML page,
which notebooks display, or another format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ....analysis.explain.saved_values import SavedValue
from ....analysis.memory.timeline import Timeline
from ....reports.by_module import ModuleNames, ModuleRow
from ....search.budget.compiled_candidate import CompiledCandidate
from ....support.diagnostics import Remark
from ..compilation.choice import Variant
from ..messages.tracebacks import shortened
from .donation import Donation
from .fit_verdict import FitVerdict
from .report_text import FORMATS, headline, to_details, to_notebook, to_text


@dataclass(frozen=True)
class Needs:
    """The memory and the work of a compiled step, as the compiler reports them.

    Attributes:
        temporaries: The bytes of temporaries; None if the compiler reports no sizes.
        arguments: The bytes of arguments.
        results: The bytes of results.
        aliased: The bytes of results that share buffers with arguments.
        flops: The FLOPs of one run; None if the compiler reports none.
    """

    temporaries: int | None
    arguments: int
    results: int
    aliased: int
    flops: float | None

    @property
    def device_bytes(self) -> int | None:
        """The bytes on the device while the step runs: temporaries, arguments and results; None if unknown."""
        if self.temporaries is None:
            return None
        return self.temporaries + self.arguments + self.results - self.aliased


@dataclass(frozen=True)
class Report:
    """A comparison of the step that a call runs with the plain step.

    Attributes:
        name: The name of the step.
        plain: The memory and the work of the plain step.
        less: The memory and the work of the step that runs.
        variant: The variant of the step that runs.
        measured: The temporaries, in bytes, of each variant that was compiled for the choice; empty if only one was
            compiled.
        why: The reason why nothing is recomputed, with a remedy; None if operations are recomputed.
        copies: The number of copies of operations in the rewritten step.
        again: For each module of the model, or for each segment if the model has no named modules, the number of its
            copies in the step that runs, the largest first. The sum is below `copies` if some copies are simplified
            away.
        kept: The values that are still saved for the backward pass, the largest first.
        timelines: The live bytes over time before and after the rewrite, under the model of XLA:CPU; for each step
            inside a loop, also those of one iteration.
        remarks: The remarks of the rewrite.
        budget: The bytes on each device that the caller's budget allows; without a budget, the memory of the device, or
            None if it is unknown.
        rounds: The candidates that were compiled in the search for a budget.
        proved: Whether the step that runs is proved equal to the plain step.
        modules: The bytes that are saved and recomputed, by module of the model.
        budget_text: The budget as the caller wrote it; "" without one.
        refused: The reason why no plan is within the budget; "" if a plan is, or without a budget.
        fit: For reports of `recompute.jax.explain`, whether the step fits; None for other reports and for the budget
            `min`.
        devices: The number of devices on which the step runs. Bytes and FLOPs are counted for one device.
        donation: The arguments whose donation would save memory; None without such arguments.
        values_per_device: Whether `kept`, `modules` and `timelines` are also of one device; otherwise they are of whole
            arrays.
        module_names: The names of the modules.
        segments: The modules to which each segment by structure belongs, or the line of its first operation.
        places: The positions of steps inside loops. For such a step, `modules` gives the bytes of one iteration.
        has_loops: Whether the step has loops. The compiler counts the body of each loop once.
        is_minimum: Whether the step that runs is the result of the budget `min`.
        is_complete: Whether the search for a budget was completed, not stopped by a time limit or Ctrl-C.
        executed_flops: For a step with loops, the FLOPs of the plain step and of the step that runs, counted in their
            programs with all iterations of each loop; None without loops, and for a step that keeps its own barriers.
    """

    name: str
    plain: Needs
    less: Needs
    variant: Variant
    measured: tuple[tuple[Variant, int | None], ...]
    why: str | None
    copies: int
    again: tuple[tuple[str, int], ...]
    kept: tuple[SavedValue, ...]
    timelines: tuple[tuple[str, Timeline], ...]
    remarks: tuple[Remark | str, ...]
    budget: int | None
    rounds: tuple[CompiledCandidate, ...] = ()
    proved: bool = False
    modules: tuple[ModuleRow, ...] = ()
    budget_text: str = ""
    refused: str = ""
    fit: FitVerdict | None = None
    devices: int = 1
    values_per_device: bool = True
    module_names: ModuleNames = field(default_factory=ModuleNames)
    segments: tuple[tuple[str, tuple[str, ...]], ...] = ()
    places: tuple[str, ...] = ()
    has_loops: bool = False
    is_minimum: bool = False
    is_complete: bool = True
    executed_flops: tuple[int, int] | None = None
    donation: Donation | None = None

    @property
    def flops(self) -> tuple[float | None, float | None]:
        """The FLOPs of the plain step and of the step that runs: `executed_flops`, or else the compiler's counts."""
        return self.executed_flops or (self.plain.flops, self.less.flops)

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        return f"<recompute.jax.Report: {headline(self)}>"

    def details(self) -> str:
        """Return the report in full, with the candidates, the copies by segment, memory over time, and the remarks."""
        return to_details(self)

    @shortened
    def save(self, path: str | Path) -> None:
        """Write the report to a file, in the format of the suffix.

        Args:
            path: The file: `.html` is a page that needs no other file, `.svg` the chart of memory over time, `.txt` the
                whole text, `.json` the numbers, with sizes in bytes.

        Raises:
            ValueError: For an unknown suffix, and for a chart of a step without recomputation.
            ImportError: For a chart without matplotlib.
        """
        suffix = Path(path).suffix.lower()
        if (write := FORMATS.get(suffix)) is None:
            raise ValueError(f"cannot write a report to '{path}': expected one of the suffixes {', '.join(FORMATS)}")
        Path(path).write_text(write(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        return to_notebook(self)
