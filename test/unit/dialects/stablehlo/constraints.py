"""Programs with one operation, which violates a single constraint of StableHLO's specification."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from xdsl.utils.exceptions import VerifyException

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.test.mlir_judge import Judge


@dataclass(frozen=True)
class Template:
    """A program with a placeholder `{name}` for each of `values`, in a function with the arguments %0, %1, …"""

    text: str
    values: Mapping[str, str]
    arguments: tuple[str, ...]
    """The names of those values that are types of operands."""

    def program(self, **changed: str) -> str:
        """Return the text with some values replaced."""
        values = {**self.values, **changed}
        assert values.keys() == self.values.keys(), "a change is to something that is there"
        arguments = ", ".join(f"%{index}: {values[name]}" for index, name in enumerate(self.arguments))
        text = re.sub(r"\{(\w+)\}", lambda match: values[match[1]], self.text)
        return f"func.func @f({arguments}) {{\n  {text}\n  return\n}}"

    def refuse(self, label: str, words: str, **changed: str) -> None:
        """Check that the changed program is refused under the label, and that the original is not."""
        parse_module(self.program()).verify()
        with pytest.raises(VerifyException, match=f"^{label}: .*{words}"):
            parse_module(self.program(**changed)).verify()

    def accept(self, judge: Judge, **changed: str) -> None:
        """Check that the changed program verifies here and in JAX's MLIR, and that both print it alike."""
        module = parse_module(self.program(**changed))
        module.verify()
        theirs = judge.print(self.program(**changed), debuginfo=False)
        assert judge.print(print_module(module), debuginfo=False) == theirs
