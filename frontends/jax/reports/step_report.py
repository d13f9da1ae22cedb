"""The report on a plain step and its rewrite, which `compare_step.py` computes.

It covers memory, FLOPs, live values at the peak, saved values, and recomputed operations.

`print(report)` shows a summary, `report.details()` returns the whole text, and `report.save(path)` writes an HTML page
or another format. Notebooks display the HTML page.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..messages.tracebacks import shortened
from .report_formats import FORMATS, SVG, to_details, to_notebook, to_text
from .report_numbers import headline
from .report_records import ReportData


@dataclass(frozen=True, kw_only=True)
class Report(ReportData):
    """A comparison of the step that a call runs with the plain step, which can be printed and saved."""

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
            path: The file. Its suffix selects the format: `.html` for a page that needs no other file, `.svg` for the
                chart of memory over time, `.txt` for the whole text, and `.json` for the numbers, with sizes in bytes.

        Raises:
            ValueError: For an unknown suffix, and for a chart of a step without recomputation.
            ImportError: For a chart, if matplotlib is missing.
        """
        suffix = Path(path).suffix.lower()
        if (write := FORMATS.get(suffix)) is None:
            known = ", ".join(f"{name} (with matplotlib)" if name == SVG else name for name in FORMATS)
            raise ValueError(f"cannot write a report to '{path}': expected one of the suffixes {known}")
        Path(path).write_text(write(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        return to_notebook(self)
