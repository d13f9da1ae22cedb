"""Add copies of views as operations, for graphs whose views are smaller than their storage.

A slice of a gradient keeps the whole buffer live; a copy of the slice needs its own bytes only.

    with_copies(problem, views)      the step with an operation `copy:<node>` for each view, after the viewed storage
    views_apart(problem)             a relaxation of the step with any copies of views, for bounds

A copy has the cost of data movement in the graphs: 16 per byte read or written. It is an ordinary operation: it can run
again, and its result can be dropped.

The bound. In `views_apart` a storage is split into its views and the remainder, all made by its maker; a reader of the
whole storage reads all parts. For any schedule with any copies of views: if the storage is live, its parts are, which
together are no larger; if a copy is live, its part is, which is no larger. The first executions of copies are free in
the relaxation. So a lower bound of the relaxation is one for every schedule with copies of views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .problem import OperationRow, Problem, SmallView, problem_of

COST_PER_BYTE = 16
"""The cost of data movement, for each byte read or written."""


def with_copies(problem: Problem, views: Sequence[SmallView]) -> Problem:
    """Add copies of views as operations.

    Args:
        problem: The problem.
        views: The views to copy.

    Raises:
        ValueError: For a view of another problem.
    """
    views_after = dict[int, list[SmallView]]()
    for view in views:
        if view not in problem.views:
            raise ValueError(f"view {view.label} is not one of the problem's views")
        views_after.setdefault(view.after, []).append(view)
    view_read = {(op, view.value): view for view in views for op in view.readers}
    # Storages of the new problem are numbered in the order of their names.
    rows = list[OperationRow]()
    number = dict[int, int]()
    copy_of_view = dict[str, int]()
    names = list[str]()
    for op in range(len(problem)):
        reads = [
            copy_of_view[view_read[op, v].label] if (op, v) in view_read else number[v] for v in problem.reads_of(op)
        ]
        rows.append(replace(_row(problem, op), reads=reads))
        for v in problem.makes_of(op):
            number[v] = len(names)
            names.append(problem.value_names[v])
        for view in views_after.get(op, ()):
            row = _copy_row(view, number[view.value], bool(problem.backward[op]))
            rows.append(row)
            copy_of_view[view.label] = len(names)
            names.append(row.name)
    outputs = [number[v] for v in range(len(problem.sizes)) if problem.output[v]]
    earliest = problem.earliest + sum(view.after < problem.earliest for view in views)
    return problem_of(rows, outputs, names, earliest, everywhere=problem.everywhere)


def _copy_row(view: SmallView, storage: int, backward: bool) -> OperationRow:
    """Return the operation that copies a view of a storage: it reads and writes the bytes of the view."""
    label = f"copy:{view.label}"
    cost = 2 * COST_PER_BYTE * view.bytes
    return OperationRow(label, cost, reads=[storage], makes=[view.bytes], backward=backward, label=label)


def views_apart(problem: Problem) -> Problem:
    """Return the relaxation that the docstring of the module describes. Its operations keep their numbers."""
    views_of = dict[int, list[SmallView]]()
    for view in problem.views:
        views_of.setdefault(view.value, []).append(view)
    view_read = {(op, view.value): view for view in problem.views for op in view.readers}
    # For each storage the numbers of its parts, by the label of the view. Parts are numbered in the order of `names`.
    rows = list[OperationRow]()
    parts = dict[int, dict[str, int]]()
    names, outputs = list[str](), list[int]()
    for op in range(len(problem)):
        reads = [
            part
            for v in problem.reads_of(op)
            for part in ([parts[v][view_read[op, v].label]] if (op, v) in view_read else parts[v].values())
        ]
        makes = list[int]()
        for v in problem.makes_of(op):
            sizes = _part_sizes(int(problem.sizes[v]), views_of.get(v, ()))
            parts[v] = {label: len(names) + index for index, label in enumerate(sizes)}
            makes += sizes.values()
            names += [f"{problem.value_names[v]} {label}".rstrip() for label in sizes]
            if problem.output[v]:
                outputs += parts[v].values()
        rows.append(replace(_row(problem, op), reads=reads, makes=makes))
    return problem_of(rows, outputs, names, problem.earliest, everywhere=problem.everywhere)


def _part_sizes(size: int, views: Sequence[SmallView]) -> dict[str, int]:
    """Return the bytes of the parts of a storage of `size` bytes: by the labels of the views, and "" for the
    remainder."""
    total = sum(view.bytes for view in views)
    parts = {view.label: view.bytes * size // max(size, total) for view in views} if total else {}
    return {"": max(0, size - total), **parts}


def _row(problem: Problem, op: int) -> OperationRow:
    """Return an operation of the problem without its operands."""
    return OperationRow(
        name=problem.names[op],
        cost=int(problem.costs[op]),
        makes=[int(problem.sizes[v]) for v in problem.makes_of(op)],
        inner=int(problem.inner[op]),
        again=bool(problem.again[op]),
        backward=bool(problem.backward[op]),
        label=problem.labels[op],
    )
