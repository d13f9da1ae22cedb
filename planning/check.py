"""Check that a plan is valid for a graph: its operations and values exist, and every value is computed before it is
read.

A plan that satisfies these rules does not change the results of the step. `simulate.py` lists the operations of the
step under the plan, and `liveness.py` computes its peak.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from .gates import is_gate
from .graph import Graph
from .plan import CopyGroup, NotRecomputed, Plan
from .plan_file import OperationNote


def violations(graph: Graph, plan: Plan, refused: Collection[int] = ()) -> Iterator[str]:
    """Yield a message for each violation of the rules.

    Args:
        graph: The graph of the step.
        plan: The plan to check.
        refused: Operations that must not run twice.
    """
    for index, group in enumerate(plan.groups):
        if (message := _unknown_index(graph, group)) is not None:
            yield f"group {index}: {message}"
            return
    yield from unknown_operations(graph, plan.kept)
    copies, place = set[tuple[int, int]](), 0
    for index, group in enumerate(plan.groups):
        if group.before < place:
            yield f"group {index}: its copies precede those of group {index - 1}, but groups must be in program order"
        place = group.before
        yield from (f"group {index}: {message}" for message in _violations_in(graph, group, refused))
        for copy in zip(group.operations, group.numbers, strict=True):
            if copy in copies:
                yield f"group {index}: two copies of operation {copy[0]} have the number {copy[1]}"
            copies.add(copy)


def unknown_operations(graph: Graph, entries: Iterable[NotRecomputed | OperationNote]) -> Iterator[str]:
    """Yield a message for each plan entry that refers to an operation outside the graph."""
    for index, entry in enumerate(entries):
        if entry.operation not in range(len(graph)):
            name = "note" if isinstance(entry, OperationNote) else "kept"
            expected = f"the graph has {len(graph)} operations, numbered from 0"
            yield f"{name} {index}: operation {entry.operation} does not exist; {expected}"


def _unknown_index(graph: Graph, group: CopyGroup) -> str | None:
    operations, values = range(len(graph)), range(len(graph.maker))
    if group.before not in operations or any(op not in operations for op in group.operations):
        return f"it refers to an operation that does not exist: the graph has {len(graph)} operations, numbered from 0"
    read = (*group.inputs, *group.replaces, *group.gates, *(v for batch in group.batches for v in batch.awaited))
    if any(value not in values for value in read):
        return f"it refers to a value that does not exist: the graph has {len(values)} values, numbered from 0"
    if len(group.numbers) != len(group.operations) or any(number < 1 for number in group.numbers):
        return "each copy must have a number of at least 1"
    return None


def _violations_in(graph: Graph, group: CopyGroup, refused: Collection[int]) -> Iterator[str]:
    """Yield a message for each violation inside a group."""
    for op in group.operations:
        if op in refused:
            yield f"{graph.names[op]}, operation {op}, must not run twice: {graph.effects[op]}"
        if op >= group.before:
            yield f"{graph.names[op]}, operation {op}, is copied before it has run"
    yield from _violations_of_use_before_definition(graph, group)
    if len(set(group.operations)) != len(group.operations):
        yield "an operation is copied twice in this group"
    results, inputs = set(graph.results_of(group.operations)), set(group.inputs)
    if results & inputs:
        yield "the group computes one of its own inputs"
    if any(graph.maker[value] >= group.before for value in inputs):
        yield "an input is computed after the copies that read it"
    if not results.issuperset(group.replaces):
        yield "the group replaces a value that it does not compute"
    yield from _violations_of_gates(graph, group)


def _violations_of_use_before_definition(graph: Graph, group: CopyGroup) -> Iterator[str]:
    results, inputs = set[int](), set[int]()
    for batch in group.batches:
        inputs.update(batch.inputs)
        if not results.issuperset(batch.awaited):
            yield "a batch waits for a value that no earlier batch computes"
        for op in batch.operations:
            missing = [v for v in graph.reads[op] if not (v in results or v in inputs or v in graph.constants)]
            if missing:
                reader = f"{graph.names[op]}, operation {op},"
                yield f"{reader} reads value {missing[0]}, which is neither copied nor an input"
            results.update(graph.makes[op])


def _violations_of_gates(graph: Graph, group: CopyGroup) -> Iterator[str]:
    if not any(is_gate(graph, gate) and graph.maker[gate] < group.before for gate in group.gates):
        yield "none of its gates is a gradient value computed before the copies, so nothing delays the copies"
    if any(graph.maker[gate] >= group.before for gate in group.gates):
        yield "one of its gates is computed after the copies that wait for it"
