"""Add copies of views as operations to a problem whose views are smaller than their storages.

For example, a slice of a gradient keeps the whole buffer live, while a copy of the slice needs only its own bytes.

    with_copies(problem, views)      the step with an operation `copy:<node>` for each view, after the viewed storage
    split_views(problem)             a relaxation of the step with any copies of views, for bounds

A copy costs 16 for each byte read or written, which is the cost of data movement in these graphs. It is an ordinary
operation: it can be rerun, and its result can be dropped.

In the relaxation, each storage is split into parts: its views and the remainder. The maker of the storage makes all
parts, and an operation that reads the whole storage reads all parts. Any schedule with any copies of views corresponds
to a schedule of the relaxation. Where the schedule keeps a storage live, the relaxation keeps the parts of this storage
live, whose total size is no larger. Where the schedule keeps a copy of a view live, the relaxation keeps the
corresponding part live, which is no larger than the copy. The first executions of copies are free in the relaxation. So
every lower bound on the cost of the relaxation is valid for every schedule with copies of views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .problem import OperationRow, Problem, SmallView, problem_of

COST_PER_BYTE = 16
"""The cost of data movement, for each byte read or written."""


def with_copies(problem: Problem, views: Sequence[SmallView]) -> Problem:
    """Return the problem with copies of views added as operations.

    Args:
        problem: The problem.
        views: The views to copy.

    Raises:
        ValueError: If a view belongs to another problem.
    """
    views_after = dict[int, list[SmallView]]()
    for view in views:
        if view not in problem.views:
            raise ValueError(f"view {view.label} is not one of the problem's views")
        views_after.setdefault(view.available_after, []).append(view)
    view_read = {(op, view.storage): view for view in views for op in view.readers}
    # Storages of the new problem are numbered in the order of their names.
    rows = list[OperationRow]()
    number = dict[int, int]()
    copy_of_view = dict[str, int]()
    names = list[str]()
    for op in range(len(problem)):
        operands = [
            copy_of_view[view_read[op, v].label] if (op, v) in view_read else number[v] for v in problem.operands_of(op)
        ]
        rows.append(replace(_row(problem, op), operands=operands))
        for v in problem.results_of(op):
            number[v] = len(names)
            names.append(problem.storage_names[v])
        for view in views_after.get(op, ()):
            row = _copy_row(view, number[view.storage], bool(problem.is_backward[op]))
            rows.append(row)
            copy_of_view[view.label] = len(names)
            names.append(row.name)
    outputs = [number[v] for v in range(len(problem.storage_bytes)) if problem.is_output[v]]
    earliest = problem.earliest_stage + sum(view.available_after < problem.earliest_stage for view in views)
    return problem_of(rows, outputs, names, earliest, allows_forward_copies=problem.allows_forward_copies)


def _copy_row(view: SmallView, storage: int, is_backward: bool) -> OperationRow:
    """Return the operation that copies a view of a storage: it reads and writes the bytes of the view."""
    label = f"copy:{view.label}"
    cost = 2 * COST_PER_BYTE * view.bytes
    return OperationRow(label, cost, [storage], [view.bytes], is_backward=is_backward, label=label)


def split_views(problem: Problem) -> Problem:
    """Return the relaxation that the module docstring describes. Operations have the same indices as in the problem."""
    views_of = dict[int, list[SmallView]]()
    for view in problem.views:
        views_of.setdefault(view.storage, []).append(view)
    view_read = {(op, view.storage): view for view in problem.views for op in view.readers}
    # `parts`: for each storage, the indices of its parts, by the label of the view. Parts are numbered as in `names`.
    rows = list[OperationRow]()
    parts = dict[int, dict[str, int]]()
    names, outputs = list[str](), list[int]()
    for op in range(len(problem)):
        operands = [
            part
            for v in problem.operands_of(op)
            for part in ([parts[v][view_read[op, v].label]] if (op, v) in view_read else parts[v].values())
        ]
        result_bytes = list[int]()
        for v in problem.results_of(op):
            sizes = _part_sizes(int(problem.storage_bytes[v]), views_of.get(v, ()))
            parts[v] = {label: len(names) + index for index, label in enumerate(sizes)}
            result_bytes += sizes.values()
            names += [f"{problem.storage_names[v]} {label}".rstrip() for label in sizes]
            if problem.is_output[v]:
                outputs += parts[v].values()
        rows.append(replace(_row(problem, op), operands=operands, result_bytes=result_bytes))
    return problem_of(rows, outputs, names, problem.earliest_stage, allows_forward_copies=problem.allows_forward_copies)


def _part_sizes(size: int, views: Sequence[SmallView]) -> dict[str, int]:
    """Return the bytes of the parts of a storage of `size` bytes, by the label of the view; the label of the remainder
    is ""."""
    total = sum(view.bytes for view in views)
    parts = {view.label: view.bytes * size // max(size, total) for view in views} if total else {}
    return {"": max(0, size - total), **parts}


def _row(problem: Problem, op: int) -> OperationRow:
    """Return an operation of the problem as a row without operands."""
    return OperationRow(
        name=problem.names[op],
        cost=int(problem.costs[op]),
        result_bytes=[int(problem.storage_bytes[v]) for v in problem.results_of(op)],
        inner_bytes=int(problem.inner_bytes[op]),
        may_run_again=bool(problem.may_run_again[op]),
        is_backward=bool(problem.is_backward[op]),
        label=problem.labels[op],
    )
