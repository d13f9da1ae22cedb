"""Plans as text: what one run decides, the next can carry out, or somebody else read, change and hand back.

    {"recompute_plan": 1, "steps": [{"function": "main", "graph": "5f2c…", "groups": […], "kept": […], "notes": […]}]}

`graph` is the fingerprint of the graph that the plan is for: a plan for another program is refused. The numbers are
those of the graph after inlining.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from .plan import Batch, CopyGroup, Kept, Plan

VERSION = 1
Mark = bool | str


class BadPlan(ValueError):
    """A plan that cannot be read, or that does not fit the graph; the words name the culprit."""


@dataclass(frozen=True)
class Note:
    """What is written on an operation besides the copies: its segment, what it is marked to be (one mark, or one for
    each result), and whether it is noted as kept."""

    operation: int
    segment: str | None = None
    recompute: Mark | tuple[Mark, ...] | None = None
    checkpoint: bool = False


@dataclass(frozen=True)
class StepPlan:
    """The plan of one function. `graph`: the fingerprint of what it is for."""

    function: str
    graph: str
    plan: Plan
    notes: tuple[Note, ...] = ()


def to_json(steps: Iterable[StepPlan]) -> str:
    """One step a line, its groups on lines of their own."""
    return "\n".join(['{"recompute_plan": 1, "steps": [', ",\n".join(map(_step_text, steps)), "]}", ""])


def _step_text(step: StepPlan) -> str:
    head = json.dumps({"function": step.function, "graph": step.graph})[:-1]
    lists: list[tuple[str, Iterable[object]]] = [
        ("groups", map(_group_data, step.plan.groups)),
        ("kept", map(asdict, step.plan.kept)),
        ("notes", map(_note_data, step.notes)),
    ]
    return "".join([head, *(f', "{name}": [\n{_lines(listed)}]' for name, listed in lists), "}"])


def _lines(listed: Iterable[object]) -> str:
    return ",\n".join(json.dumps(one) for one in listed)


def _group_data(group: CopyGroup) -> dict[str, object]:
    return {**asdict(group), "batches": [asdict(batch) for batch in group.batches]}


def _note_data(note: Note) -> dict[str, object]:
    return {name: value for name, value in asdict(note).items() if value is not None and value is not False}


def from_json(text: str) -> tuple[StepPlan, ...]:
    """Raises `BadPlan`."""
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadPlan(f"line {error.lineno}: the plan is no JSON: {error.msg}") from error
    try:
        if data["recompute_plan"] != VERSION:
            raise BadPlan(f"this is a plan of version {data['recompute_plan']}, and version {VERSION} is read here")
        return tuple([_step(step) for step in data["steps"]])
    except (KeyError, TypeError, AttributeError) as error:
        raise BadPlan(f"the plan lacks something, or has what it should not have: {error}") from error


def _step(data: dict[str, Any]) -> StepPlan:
    groups = tuple([_group(dict(group)) for group in data["groups"]])
    kept = tuple([Kept(**one) for one in data.get("kept", ())])
    notes = tuple([_note(dict(one)) for one in data.get("notes", ())])
    return StepPlan(str(data["function"]), str(data["graph"]), Plan(groups, kept), notes)


def _group(data: dict[str, Any]) -> CopyGroup:
    data["batches"] = tuple([Batch(**{name: _numbers(v) for name, v in one.items()}) for one in data["batches"]])
    for name in ("numbers", "replaces", "gates"):
        data[name] = _numbers(data[name])
    return CopyGroup(**data)


def _note(data: dict[str, Any]) -> Note:
    if isinstance(data.get("recompute"), list):
        data["recompute"] = tuple(data["recompute"])
    return Note(**data)


def _numbers(listed: Iterable[Any]) -> tuple[int, ...]:
    numbers = tuple(listed)
    if not all(type(number) is int for number in numbers):
        raise BadPlan(f"expected a list of numbers, not {list(numbers)}")
    return numbers
