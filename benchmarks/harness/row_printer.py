"""Print the rows of a table while they are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from recompute.benchmarks.harness.command_line import write_json
from recompute.benchmarks.harness.markdown import table_head, table_row

Row = TypeVar("Row", bound=Any)
"""A dataclass with the measurements of a row."""


def print_rows(
    titles: Sequence[str], rows: Iterable[Row], cells: Callable[[Row], Iterable[object]], json: Path | None = None
) -> list[Row]:
    """Print a Markdown table, each row as soon as it is measured, and return the rows.

    Args:
        titles: The titles of the columns.
        rows: Measures and yields the rows, which are dataclasses.
        cells: Returns the cells of a row, in the order of the titles.
        json: The file to which all rows so far are written after each row; None for no file.
    """
    print(table_head(titles), flush=True)
    result = list[Row]()
    for row in rows:
        print(table_row(cells(row)), flush=True)
        result.append(row)
        write_json(json, [asdict(entry) for entry in result])
    return result
