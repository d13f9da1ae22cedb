"""Programs of one operation that keep all constraints of StableHLO's specification but one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from xdsl.utils.exceptions import VerifyException

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module

from .judge import Judge


@dataclass(frozen=True)
class Template:
    """`text` with `{name}` where a value of `values` stands; a function around it takes `arguments` as %0, %1, …"""

    text: str
    values: Mapping[str, str]
    arguments: tuple[str, ...]
    """The names of those values that are types of operands."""

    def program(self, **changed: str) -> str:
        """The text with these values in place of its own."""
        values = {**self.values, **changed}
        assert values.keys() == self.values.keys(), "a change is to something that is there"
        arguments = ", ".join(f"%{index}: {values[name]}" for index, name in enumerate(self.arguments))
        text = re.sub(r"\{(\w+)\}", lambda match: values[match[1]], self.text)
        return f"func.func @f({arguments}) {{\n  {text}\n  return\n}}"

    def refuse(self, label: str, words: str, **changed: str) -> None:
        """It is refused under the label; as it stands it is not."""
        parse_module(self.program()).verify()
        with pytest.raises(VerifyException, match=f"^{label}: .*{words}"):
            parse_module(self.program(**changed)).verify()

    def accept(self, judge: Judge, **changed: str) -> None:
        """It is right here, and to JAX's MLIR, which reads ours as its own."""
        module = parse_module(self.program(**changed))
        module.verify()
        theirs = judge.print(self.program(**changed), debuginfo=False)
        assert judge.print(print_module(module), debuginfo=False) == theirs
