"""Build the Markdown tables of the benchmarks, and insert them into the pages of `docs/measured/`.

On a page, the lines `<!-- name -->` and `<!-- end -->` enclose the table `name`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def table_row(cells: Iterable[object]) -> str:
    """Return the cells as one row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table_head(titles: Sequence[str]) -> str:
    """Return the first two lines of a table: the column titles, and the separator below them."""
    return f"{table_row(titles)}\n|{'---|' * len(titles)}"


def markdown_table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a complete Markdown table."""
    return "\n".join([table_head(titles), *map(table_row, rows)])


def insert_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return the page with each table inserted between its markers, in place of the previous table.

    Args:
        page: The Markdown source of the page.
        tables: The tables, by the names in their markers.

    Raises:
        AssertionError: The page lacks the markers of a table.
    """
    for name, table in tables.items():
        before, place, others = page.partition(f"<!-- {name} -->\n")
        _, end, after = others.partition("<!-- end -->")
        assert place and end, f"the page lacks the line '<!-- {name} -->', or an '<!-- end -->' after it"
        page = f"{before}{place}{table}\n{end}{after}"
    return page


def write_tables(page: Path, tables: Mapping[str, str]) -> None:
    """Insert tables into a page file, as `insert_tables` does."""
    page.write_text(insert_tables(page.read_text(), tables))
