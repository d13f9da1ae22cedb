"""Typed access to the fields of a JSON object, with messages for missing, unknown and wrongly typed fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from ..support.strict_json import why_no_amount


class BadPlan(ValueError):
    """A plan that cannot be parsed, or that does not fit the graph; the message names the field."""


@dataclass(frozen=True)
class JsonFields:
    """One object. `where`: its path, `plan.steps[0]`."""

    data: dict[str, object]
    where: str

    @classmethod
    def of(cls, data: object, where: str, names: Iterable[str]) -> JsonFields:
        """Wrap an object. Raises `BadPlan` if `data` is no object, or has fields that are not in `names`."""
        if not isinstance(data, dict):
            raise BadPlan(f"{where} is no object")
        fields = cls(cast(dict[str, Any], data), where)
        for name in fields.data.keys() - set(names):
            raise BadPlan(f"{where} has an unknown field '{name}'")
        return fields

    def text(self, name: str) -> str:
        value = self._value(name)
        if not isinstance(value, str):
            raise self.wrong(name, "string")
        return value

    def number(self, name: str) -> int:
        """A whole number from 0 to 2**53 - 1: of bytes, FLOPs, or an operation."""
        value = self._value(name)
        if (reason := why_no_amount(value)) is not None:
            raise BadPlan(f"{self.where}.{name} {reason}: {value!r}"[:200])
        return cast(int, value)

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers, each as in `number`."""
        value = self._value(name)
        if not isinstance(value, list):
            raise self.wrong(name, "list of numbers")
        for index, entry in enumerate(cast(list[object], value)):
            if (reason := why_no_amount(entry)) is not None:
                raise BadPlan(f"{self.where}.{name}[{index}] {reason}: {entry!r}"[:200])
        return tuple(cast(list[int], value))

    def flag(self, name: str) -> bool:
        value = self._value(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "truth value")
        return value

    def objects(self, name: str, names: Iterable[str]) -> list[JsonFields]:
        value = self._value(name)
        if not isinstance(value, list):
            raise self.wrong(name, "list")
        entries = cast(list[object], value)
        return [JsonFields.of(entry, f"{self.where}.{name}[{index}]", names) for index, entry in enumerate(entries)]

    def object(self, name: str, names: Iterable[str]) -> JsonFields:
        return JsonFields.of(self._value(name), f"{self.where}.{name}", names)

    def wrong(self, name: str, expected: str) -> BadPlan:
        return BadPlan(f"{self.where}.{name} is no {expected}: {self.data[name]!r}"[:200])

    def _value(self, name: str) -> object:
        if name not in self.data:
            raise BadPlan(f"{self.where}.{name} is missing")
        return self.data[name]
