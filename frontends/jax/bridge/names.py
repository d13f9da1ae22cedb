"""Name hints for values, from the names that MLIR prints (`%arg0`, `%cst`): the hints that the parser would keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from xdsl.ir import SSAValue


class ValueHints:
    def __init__(self, module: ir.Module):
        self._state = ir.AsmState(module.operation)
        self._are_numbers: dict[str, bool] = {}
        """By operation name, whether its results have numbers only: a kind of operation names all results or none."""

    def give(self, name: str, results: Sequence[Any], ours: Sequence[SSAValue]) -> None:
        if self._are_numbers.get(name):
            return
        hints = [self._hint(result) for result in results]
        self._are_numbers[name] = not any(hints)
        _give(hints, ours)

    def give_arguments(self, arguments: Sequence[Any], ours: Sequence[SSAValue]) -> None:
        _give([self._hint(argument) for argument in arguments], ours)

    def _hint(self, value: Any) -> str | None:
        """The name; None for a number, as `%0` or `%0#1`."""
        name = value.get_name(self._state)[1:].partition("#")[0]
        return None if name.isdecimal() else name


def _give(hints: Sequence[str | None], ours: Sequence[SSAValue]) -> None:
    for hint, value in zip(hints, ours, strict=True):
        if hint is not None:
            value.name_hint = hint
