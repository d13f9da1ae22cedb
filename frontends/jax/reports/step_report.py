"""The report on a plain and a rewritten step. `compare_step.py` computes it.

It covers memory, FLOPs, live values at the peak, saved values, and recomputed operations.

`print(report)` shows a summary, `report.details()` returns the whole text, and `report.save(path)` writes an HTML page
or another format. Notebooks display the HTML page.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....analysis.explain.saved_values import SavedValue
from ....analysis.memory.timeline import Timeline
from ....reports.by_module import ModuleRow
from ....support.remarks import Remark
from ..compilation.variants import Variant
from ..messages.tracebacks import shortened
from .donation import Donation
from .fit_verdict import FitVerdict
from .report_formats import FORMATS, SVG, to_details, to_notebook, to_text
from .report_numbers import headline
from .report_records import BudgetSearch, LoopFacts, ModelParts, Needs, RecomputedOperations, StoredValues


@dataclass(frozen=True, kw_only=True)
class Report:
    """A comparison of the step that a call runs with the plain step.

    The properties `copies`, `copies_by_module`, `kept`, `modules` and `timelines` are shortcuts to parts of
    `recomputed` and `stored`.

    Attributes:
        name: The name of the step.
        plain: The memory and the work of the plain step.
        chosen: The memory and the work of the step that runs.
        variant: The variant of the step that runs.
        measured: The temporaries, in bytes, of each variant that was compiled for the choice; empty if only one was
            compiled.
        why: The reason that nothing is recomputed, with a remedy; None if operations are recomputed.
        proved: Whether the step that runs is proved equal to the plain step.
        remarks: The remarks of the rewrite.
        recomputed: The recomputed operations: `count` and `by_module`.
        stored: The values that are stored for the backward pass: `saved`, `modules` and `timelines`.
        model: The modules of the model, and the segments of the rewrite.
        loops: Whether the step has loops, and its FLOPs over all iterations.
        search: The budget and the search for a plan within it: `limit_bytes`, `candidates` and `refused`.
        devices: The number of devices on which the step runs. Bytes and FLOPs are counted for one device.
        fit: For reports of `recompute.jax.explain`, whether the step fits; None for other reports.
        donation: The arguments whose donation would reduce memory; None without such arguments.
    """

    name: str
    plain: Needs
    chosen: Needs
    variant: Variant
    measured: tuple[tuple[Variant, int | None], ...]
    why: str | None
    proved: bool
    remarks: tuple[Remark | str, ...]
    recomputed: RecomputedOperations
    stored: StoredValues
    model: ModelParts
    loops: LoopFacts
    search: BudgetSearch
    devices: int = 1
    fit: FitVerdict | None = None
    donation: Donation | None = None

    @property
    def copies(self) -> int:
        """The number of copies of operations in the rewritten step."""
        return self.recomputed.count

    @property
    def copies_by_module(self) -> tuple[tuple[str, int], ...]:
        """The number of copies in each module, the largest first."""
        return self.recomputed.by_module

    @property
    def kept(self) -> tuple[SavedValue, ...]:
        """The values that are still saved for the backward pass, the largest first."""
        return self.stored.saved

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        """The bytes that are saved and recomputed, by module of the model."""
        return self.stored.modules

    @property
    def timelines(self) -> tuple[tuple[str, Timeline], ...]:
        """The live bytes over time, before and after the rewrite."""
        return self.stored.timelines

    @property
    def flops(self) -> tuple[float | None, float | None]:
        """The FLOPs of the plain step and of the step that runs, `plain.flops` and `chosen.flops`."""
        return self.plain.flops, self.chosen.flops

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
            known = ", ".join(f"{name} (with matplotlib)" if name == SVG else name for name in FORMATS)
            raise ValueError(f"cannot write a report to '{path}': expected one of the suffixes {known}")
        Path(path).write_text(write(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        return to_notebook(self)
