"""Copies of views as operations, for graphs whose views are smaller than their storage.

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
    """Add copies of views as operations. Raises `ValueError` for a view of another problem."""
    behind = dict[int, list[SmallView]]()
    for view in views:
        if view not in problem.views:
            raise ValueError(f"view {view.label} is not one of the problem's views")
        behind.setdefault(view.after, []).append(view)
    through = {(op, view.value): view for view in views for op in view.readers}
    rows, number, copied = list[OperationRow](), dict[int, int](), dict[str, int]()
    names, made = list[str](), 0
    for op in range(len(problem)):
        reads = [copied[through[op, v].label] if (op, v) in through else number[v] for v in problem.reads_of(op)]
        rows.append(replace(_row(problem, op), reads=reads))
        for v in problem.makes_of(op):
            number[v], made = made, made + 1
            names.append(problem.value_names[v])
        for view in behind.get(op, ()):
            label = f"copy:{view.label}"
            cost, late = 2 * COST_PER_BYTE * view.bytes, bool(problem.backward[op])
            rows.append(OperationRow(label, cost, [number[view.value]], [view.bytes], 0, True, late, label))
            copied[view.label], made = made, made + 1
            names.append(label)
    outputs = [number[v] for v in range(len(problem.sizes)) if problem.output[v]]
    earliest = problem.earliest + sum(view.after < problem.earliest for view in views)
    return problem_of(rows, outputs, names, earliest, everywhere=problem.everywhere)


def views_apart(problem: Problem) -> Problem:
    """Return the relaxation that the docstring of the module describes. Its operations keep their numbers."""
    parts = dict[int, list[SmallView]]()
    for view in problem.views:
        parts.setdefault(view.value, []).append(view)
    through = {(op, view.value): view for view in problem.views for op in view.readers}
    rows, pieces = list[OperationRow](), dict[int, dict[str, int]]()
    names, outputs, made = list[str](), list[int](), 0
    for op in range(len(problem)):
        reads = [
            piece
            for v in problem.reads_of(op)
            for piece in ([pieces[v][through[op, v].label]] if (op, v) in through else pieces[v].values())
        ]
        makes = list[int]()
        for v in problem.makes_of(op):
            sizes = _pieces(int(problem.sizes[v]), parts.get(v, ()))
            pieces[v] = {label: made + index for index, label in enumerate(sizes)}
            makes += sizes.values()
            names += [f"{problem.value_names[v]} {label}".rstrip() for label in sizes]
            made += len(sizes)
            if problem.output[v]:
                outputs += pieces[v].values()
        rows.append(replace(_row(problem, op), reads=reads, makes=makes))
    return problem_of(rows, outputs, names, problem.earliest, everywhere=problem.everywhere)


def _pieces(size: int, views: Sequence[SmallView]) -> dict[str, int]:
    """Return the bytes of the parts of a storage of `size` bytes: by the labels of the views, and "" for the
    remainder."""
    total = sum(view.bytes for view in views)
    parts = {view.label: view.bytes * size // max(size, total) for view in views} if total else {}
    return {"": max(0, size - total), **parts}


def _row(problem: Problem, op: int) -> OperationRow:
    return OperationRow(
        name=problem.names[op],
        cost=int(problem.costs[op]),
        makes=[int(problem.sizes[v]) for v in problem.makes_of(op)],
        inner=int(problem.inner[op]),
        again=bool(problem.again[op]),
        backward=bool(problem.backward[op]),
        label=problem.labels[op],
    )
