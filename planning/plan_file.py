"""Write plans as JSON, and parse them with checks of every field.

    {"recompute_plan": 1, "steps": [{"function": "main", "graph": "5f2c…", "groups": […], "kept": […], "notes": […]}]}

The field `graph` is the fingerprint of the graph that the plan was made for; a plan for another program is refused.
Operations and values are identified by their indices in this graph, which is built after inlining.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from ..support.strict_json import BadJson, parse_strictly, why_no_amount
from .host_moves import NOTHING_MOVED, Offload
from .plan import Batch, CopyGroup, NotRecomputed, Plan
from .skip_reason import SkipReason


class BadPlan(ValueError):
    """The error for a plan that cannot be parsed or does not match the graph. The message names the field."""


@dataclass(frozen=True)
class JsonFields:
    """A JSON object whose fields are type-checked when they are read. `where`: its path, such as `plan.steps[0]`."""

    data: dict[str, object]
    where: str

    @classmethod
    def of(cls, data: object, where: str, names: Sequence[str]) -> JsonFields:
        """Wrap the JSON value `data`. Raises `BadPlan` if it is not an object, or has a field that is not in
        `names`."""
        if not isinstance(data, dict):
            raise BadPlan(f"{where} must be an object")
        fields = cls(cast(dict[str, Any], data), where)
        for name in fields.data.keys() - set(names):
            raise BadPlan(f"{where} has an unknown field '{name}'; expected one of {', '.join(names)}")
        return fields

    def text(self, name: str) -> str:
        """Read a string field."""
        value = self._value(name)
        if not isinstance(value, str):
            raise self.wrong_type(name, "string")
        return value

    def number(self, name: str) -> int:
        """Read an integer in [0, 2**53): a byte count, a FLOP count or an index."""
        value = self._value(name)
        if (reason := why_no_amount(value)) is not None:
            raise BadPlan(f"{self.where}.{name} {reason}: {value!r}"[:200])
        return cast(int, value)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Read a list of integers, with the limits of `number`."""
        value = self._value(name)
        if not isinstance(value, list):
            raise self.wrong_type(name, "list of numbers")
        for index, entry in enumerate(cast(list[object], value)):
            if (reason := why_no_amount(entry)) is not None:
                raise BadPlan(f"{self.where}.{name}[{index}] {reason}: {entry!r}"[:200])
        return tuple(cast(list[int], value))

    def flag(self, name: str) -> bool:
        """Read a boolean field."""
        value = self._value(name)
        if not isinstance(value, bool):
            raise self.wrong_type(name, "boolean")
        return value

    def objects(self, name: str, names: Sequence[str]) -> list[JsonFields]:
        """Read a list of objects. Fields that are not in `names` are refused."""
        value = self._value(name)
        if not isinstance(value, list):
            raise self.wrong_type(name, "list")
        entries = cast(list[object], value)
        return [JsonFields.of(entry, f"{self.where}.{name}[{index}]", names) for index, entry in enumerate(entries)]

    def object(self, name: str, names: Sequence[str]) -> JsonFields:
        """Read an object. Fields that are not in `names` are refused."""
        return JsonFields.of(self._value(name), f"{self.where}.{name}", names)

    def wrong_type(self, name: str, expected: str) -> BadPlan:
        """Return the error for a field that does not have the type `expected`."""
        return BadPlan(f"{self.where}.{name} must be a {expected}, not {self.data[name]!r}"[:200])

    def _value(self, name: str) -> object:
        if name not in self.data:
            raise BadPlan(f"{self.where}.{name} is missing")
        return self.data[name]


PLAN_VERSION = 1
"""The version of the plan format."""
Mark = bool | str
"""The mark of one result: true or false for whether it is recomputed, or the value of a `MarkKind`."""


@dataclass(frozen=True)
class OperationNote:
    """The attributes that a plan file records for one operation, and that are set on this operation.

    Attributes:
        operation: The index of the operation.
        segment: The name of its segment; None for an operation outside segments.
        recompute: The mark of all its results, or a tuple with one mark for each result; None if it has no mark.
        checkpoint: Whether it is a kept output of a segment.
    """

    operation: int
    segment: str | None = None
    recompute: Mark | tuple[Mark, ...] | None = None
    checkpoint: bool = False


@dataclass(frozen=True)
class StepPlan:
    """The plan of one function.

    Attributes:
        function: The symbol name of the function.
        graph: The fingerprint of its graph.
        plan: The plan.
        notes: The attributes of its operations.
        offload: The moves to the host that the graph includes.
    """

    function: str
    graph: str
    plan: Plan
    notes: tuple[OperationNote, ...] = ()
    offload: Offload = NOTHING_MOVED


def to_json(steps: Iterable[StepPlan]) -> str:
    """Return plans as JSON text, with one line for each copy group, kept segment and note."""
    return "\n".join(['{"recompute_plan": 1, "steps": [', ",\n".join(map(_step_text, steps)), "]}", ""])


def _step_text(step: StepPlan) -> str:
    moves = {"offload": asdict(step.offload)} if step.offload.offers else {}
    head = json.dumps({"function": step.function, "graph": step.graph, **moves})[:-1]
    lists: list[tuple[str, Iterable[object]]] = [
        ("groups", map(_group_data, step.plan.groups)),
        ("kept", map(asdict, step.plan.kept)),
        ("notes", map(_note_data, step.notes)),
    ]
    return "".join([head, *(f', "{name}": [\n{_lines(entries)}]' for name, entries in lists), "}"])


def _lines(entries: Iterable[object]) -> str:
    return ",\n".join(map(json.dumps, entries))


def _group_data(group: CopyGroup) -> dict[str, object]:
    return {**asdict(group), "batches": [asdict(batch) for batch in group.batches]}


def _note_data(note: OperationNote) -> dict[str, object]:
    """Return the fields of a note that differ from their defaults. The default of `recompute` is None, so the value
    false is included."""
    note_fields = asdict(note)
    if not note.checkpoint:
        del note_fields["checkpoint"]
    return {name: value for name, value in note_fields.items() if value is not None}


def from_option(text: str) -> tuple[StepPlan, ...]:
    """Parse plans that a Python caller passes as a string.

    Raises:
        BadPlan: If the text cannot be parsed. If it looks like a path, the message explains how to read the file.
    """
    try:
        return from_json(text)
    except BadPlan as error:
        if "{" in text:
            raise
        raise BadPlan(
            f"{error}; in Python, plan is the JSON text, not a path: pass Path({text!r}).read_text()"
        ) from error


def from_json(text: str) -> tuple[StepPlan, ...]:
    """Parse plans from JSON text. Raises `BadPlan` if the text cannot be parsed."""
    try:
        data = parse_strictly(text)
    except BadJson as error:
        raise BadPlan(f"line {error.line}: the plan is not valid JSON: {error.reason}") from error
    plan = JsonFields.of(data, "plan", ("recompute_plan", "steps"))
    if plan.number("recompute_plan") != PLAN_VERSION:
        raise BadPlan(f"the plan has version {plan.number('recompute_plan')}, expected version {PLAN_VERSION}")
    return tuple([_read_step(step) for step in plan.objects("steps", _STEP)])


_STEP = ("function", "graph", "groups", "kept", "notes", "offload")
_GROUP, _BATCH, _KEPT, _NOTE, _OFFLOAD = [
    tuple(field.name for field in fields(record))
    for record in (CopyGroup, Batch, NotRecomputed, OperationNote, Offload)
]


def _read_step(step: JsonFields) -> StepPlan:
    groups = tuple(map(_read_group, step.objects("groups", _GROUP)))
    entries = tuple(map(_read_kept, step.objects("kept", _KEPT)))
    notes = tuple(map(_read_note, step.objects("notes", _NOTE)))
    return StepPlan(step.text("function"), step.text("graph"), Plan(groups, entries), notes, _read_offload(step))


def _read_offload(step: JsonFields) -> Offload:
    if "offload" not in step.data:
        return NOTHING_MOVED
    moves = step.object("offload", _OFFLOAD)
    speed, share, charged = [moves.number(name) for name in ("speed", "share", "charged")]
    return Offload(moves.flag("marked"), speed, share, charged, moves.text("cost"))


def _read_group(group: JsonFields) -> CopyGroup:
    return CopyGroup(
        segment=group.text("segment"),
        before=group.number("before"),
        batches=tuple(map(_read_batch, group.objects("batches", _BATCH))),
        numbers=group.numbers("numbers"),
        replaces=group.numbers("replaces"),
        gates=group.numbers("gates"),
        freed_bytes=group.number("freed_bytes"),
        pinned_bytes=group.number("pinned_bytes"),
        extra_flops=group.number("extra_flops"),
    )


def _read_batch(batch: JsonFields) -> Batch:
    return Batch(batch.numbers("operations"), batch.numbers("inputs"), batch.numbers("awaited"))


def _read_kept(fields: JsonFields) -> NotRecomputed:
    reason = SkipReason.parse(fields.text("reason"))
    return NotRecomputed(fields.text("segment"), fields.number("operation"), reason)


def _read_note(note: JsonFields) -> OperationNote:
    return OperationNote(
        note.number("operation"),
        note.text("segment") if "segment" in note.data else None,
        _read_mark(note) if "recompute" in note.data else None,
        note.flag("checkpoint") if "checkpoint" in note.data else False,
    )


def _read_mark(note: JsonFields) -> Mark | tuple[Mark, ...]:
    """Return the mark of the operation, or a tuple with one mark for each result."""
    mark = note.data["recompute"]
    entries = cast(list[object], mark) if isinstance(mark, list) else [mark]
    marks = [entry for entry in entries if isinstance(entry, bool | str)]
    if len(marks) != len(entries):
        raise note.wrong_type("recompute", "mark or a list of marks")
    return tuple(marks) if isinstance(mark, list) else marks[0]
