"""Markdown tables of the benchmarks, and their places in the pages of `docs/measured/`.

A page marks the place of the table `name` by the lines `<!-- name -->` and `<!-- end -->`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def table_row(cells: Iterable[object]) -> str:
    """Return the cells as one line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def table_head(titles: Sequence[str]) -> str:
    """Return the two lines that begin a table: the titles of its columns, and the rule below them."""
    return f"{table_row(titles)}\n|{'---|' * len(titles)}"


def markdown_table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a whole table."""
    return "\n".join([table_row(titles), table_row(["---"] * len(titles)), *map(table_row, rows)])


def insert_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return the page with each table inserted at its place, instead of the table that was there.

    Args:
        page: The text of the page.
        tables: The tables, by the names of their places.

    Raises:
        AssertionError: The page has no place for a table.
    """
    for name, table in tables.items():
        before, place, others = page.partition(f"<!-- {name} -->\n")
        _, end, after = others.partition("<!-- end -->")
        assert place and end, f"the page has no place for {name}"
        page = f"{before}{place}{table}\n{end}{after}"
    return page
