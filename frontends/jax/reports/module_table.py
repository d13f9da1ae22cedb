"""The table in a report that lists, for each module of the model, the stored and the recomputed bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....reports.by_module import OUTSIDE, ModuleRow
from ....reports.wrapping import wrap_line
from ....support.locations import base_name
from ....support.units import format_bytes
from .report_records import ReportData

_STORED = "stored after fusion"
"""The title of the module table. Its bytes are stored bytes under the XLA:CPU model."""
COLUMNS = "recomputed values are live only while the backward pass reads them; saved bytes exclude them"
"""The explanation of the columns. A recomputed value may be stored although the plain step fuses it, so the
two columns need not add up to the bytes that the plain step saves."""
_NO_MODULES = (
    "no table of modules: no stored value belongs to a named module; name parts of the model with jax.named_scope or "
    "recompute.jax.block"
)


def module_table(report: ReportData, most: int) -> Iterator[str]:
    """Yield a table of modules: the bytes that the plain step and the rewritten step save for the backward pass, and
    the recomputed bytes.

    If no stored value belongs to a named module, yield the reason instead. `most`: the maximum number of rows.
    """
    if not report.modules:
        return
    if not has_named_modules(report):
        yield from wrap_line(_NO_MODULES)
        return
    for place in report.loops.positions:
        words, _, position = place.rpartition(" ")
        yield from wrap_line(f"modules {words} {base_name(position)}, in one iteration:")
    shown = sorted(report.modules, key=_bytes_of)[-most:]
    rows = [row for row in report.modules if row in shown]
    others = [row for row in report.modules if row not in shown]
    width = min(40, max(map(len, (_STORED, *(row.module for row in rows)))))
    yield f"{_STORED:<{width}}{'saved, plain':>15}{'saved now':>12}{'recomputed':>12}"
    yield from (_module_row(row, width) for row in rows)
    if others:
        yield _module_row(sum_of_rows(f"{len(others)} more", others), width)
    if len(report.modules) > 1:
        yield _module_row(sum_of_rows("total", report.modules), width)


def sum_of_rows(name: str, rows: Iterable[ModuleRow]) -> ModuleRow:
    """Return a row with this name that contains the sum of each column."""
    return ModuleRow(name, *[sum(column) for column in zip(*map(sizes, rows), strict=True)])


def has_named_modules(report: ReportData) -> bool:
    return any(row.module != OUTSIDE for row in report.modules)


def _module_row(row: ModuleRow, width: int) -> str:
    name = row.module if len(row.module) <= width else f"…{row.module[1 - width :]}"
    plain, saved, recomputed = map(format_bytes, sizes(row))
    return f"{name:<{width}}{plain:>15}{saved:>12}{recomputed:>12}"


def sizes(row: ModuleRow) -> tuple[int, int, int]:
    return row.plain_bytes, row.saved_bytes, row.recomputed_bytes


def _bytes_of(row: ModuleRow) -> int:
    return sum(sizes(row))
