"""The names that MLIR prints for values: `%arg0`, `%cst`; ours are what the parser would keep of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from xdsl.ir import SSAValue


class Names:
    def __init__(self, module: ir.Module):
        self._state = ir.AsmState(module.operation)
        self._are_numbers: dict[str, bool] = {}
        """Of operations by name, those seen: each kind of operation names its results always or never."""

    def give(self, name: str, results: Sequence[Any], ours: Sequence[SSAValue]) -> None:
        if self._are_numbers.get(name):
            return
        hint = self._hint(results[0])
        self._are_numbers[name] = hint is None
        if hint is not None:
            for value in ours:
                value.name_hint = hint

    def give_arguments(self, arguments: Sequence[Any], ours: Sequence[SSAValue]) -> None:
        for argument, value in zip(arguments, ours, strict=True):
            value.name_hint = self._hint(argument)

    def _hint(self, value: Any) -> str | None:
        """None for `%0`, and `%0#1`."""
        name = value.get_name(self._state)[1:].partition("#")[0]
        return None if name.isdecimal() else name
