"""The least that any schedule needs: an operation with all that it reads and makes."""

from __future__ import annotations

from dataclasses import dataclass

from .problem import Problem


@dataclass(frozen=True)
class WorkingSet:
    """`bytes` of what `operation` reads, makes and needs inside, or of the outputs, where it is None; `values`, the
    largest first."""

    bytes: int
    operation: int | None
    values: tuple[int, ...]


def largest_working_set(problem: Problem) -> WorkingSet:
    """No schedule, with copies or in another order, peaks below it; nor below the outputs, which live at the end."""
    working = problem.working_bytes
    op = int(working.argmax())
    outputs = [v for v in range(len(problem.sizes)) if problem.output[v]]
    together = sum(int(problem.sizes[v]) for v in outputs)
    if together > int(working[op]):
        return WorkingSet(together, None, _by_size(problem, outputs))
    return WorkingSet(int(working[op]), op, _by_size(problem, [*problem.reads_of(op), *problem.makes_of(op)]))


def _by_size(problem: Problem, values: list[int]) -> tuple[int, ...]:
    return tuple(sorted(values, key=lambda v: -int(problem.sizes[v])))


def held_up_by(problem: Problem, found: WorkingSet, most: int = 5) -> tuple[str, ...]:
    """The operation and its largest values, by name."""
    named = [f"{problem.value_names[v]}: {int(problem.sizes[v])} bytes" for v in found.values[:most]]
    if len(found.values) > most:
        named.append(f"… and {len(found.values) - most} more")
    if found.operation is None:
        return ("the outputs, which are all there at the end", *named)
    return (f"operation {problem.labels[found.operation]} ({problem.names[found.operation]})", *named)
