"""Write docs/operations.md from the code: the support for each operation of StableHLO, CHLO and Shardy.

    python docs/generate_operations.py

A test compares the file with the output of this script.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType

from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation

from recompute.dialects.chlo import CHLO
from recompute.dialects.sdy import SDY
from recompute.dialects.stablehlo import STABLEHLO
from recompute.interpreters.block_compiler import is_known
from recompute.proof.operations.pure_operations import PURE_OPERATIONS, TERMINATORS
from recompute.proof.translation.per_device import COLLECTIVES
from recompute.rules.facts import Effect, Facts
from recompute.rules.registry import facts_by_name

ROOT = Path(__file__).parents[1]
OUTPUT = Path(__file__).with_name("operations.md")
HEAD = """# Operations

This page lists each operation of StableHLO, CHLO and Shardy, and how far it is supported. It is generated from the code
by `docs/generate_operations.py`; do not edit. Each operation has a class with a verifier.

- **forms**: `both`: the operation is parsed and printed in StableHLO's custom form and in the generic form; `generic`:
  StableHLO defines no custom form for it.
- **constraints**: labels of the specification; an error begins with its label: `stablehlo.gather: C4: offset_dims …`.
- **kernel**: whether the interpreter executes the operation if the shapes are static.
- **facts**: whether the passes may recompute the operation. `if its regions are`: only if they may recompute each
  operation in its region.
- **proof**: `function`: equal operands give equal results; `exchange`: equal operands on all devices give equal
  results; `identity`: the result is the operand; `body`: compared as the function that it names; `effect`: the number
  and order of its executions are compared.
- **tests**: whether a test names the operation.
"""
SEEN_THROUGH = frozenset({"stablehlo.optimization_barrier"})
DECOMPOSED = frozenset({"stablehlo.composite"})
_LABEL = re.compile(r"\"([CI]\d+)(?:: |\")")
_USES = re.compile(r"verify_constraints\(self, (\w+)\)")


def operations_page() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_summary(), *(line for dialect in (STABLEHLO, CHLO, SDY) for line in _table(dialect))])


def _operations(dialect: Dialect) -> list[type[Operation]]:
    return sorted(dialect.operations, key=lambda kind: kind.name)


def _summary() -> Iterator[str]:
    yield "| dialect | operations | both forms | kernel | facts | compared by value |\n|---|---|---|---|---|---|"
    for dialect in (STABLEHLO, CHLO, SDY):
        kinds = _operations(dialect)
        counts = (
            len(kinds),
            sum(_has_custom_form(kind) for kind in kinds),
            sum(_is_executed(kind) for kind in kinds),
            sum(facts_by_name(kind.name) is not None for kind in kinds),
            sum(_proof(kind.name) != "effect" for kind in kinds),
        )
        yield f"| {dialect.name} | {' | '.join(map(str, counts))} |"
    yield ""


def _table(dialect: Dialect) -> Iterator[str]:
    yield f"## {dialect.name}\n"
    yield "| operation | forms | constraints | kernel | facts | proof | tests |\n|---|---|---|---|---|---|---|"
    for kind in _operations(dialect):
        word = kind.name.partition(".")[2]
        cells = (
            f"`{word}`",
            "both" if _has_custom_form(kind) else "generic",
            _ranges(_labels(kind)),
            "yes" if _is_executed(kind) else "",
            _facts(facts_by_name(kind.name)),
            _proof(kind.name),
            "yes" if _is_tested(kind.name) else "",
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _has_custom_form(kind: type[Operation]) -> bool:
    """Return whether the class has its own parser, in addition to the parser of the generic form."""
    return getattr(kind.parse, "__func__", None) is not getattr(IRDLOperation.parse, "__func__", None)


def _is_executed(kind: type[Operation]) -> bool:
    return is_known(kind) or kind.name in TERMINATORS


def _labels(kind: type[Operation]) -> set[str]:
    """Return the labels of constraints in the verifiers of a class and of its bases, and in the tables that these
    verifiers use."""
    labels = set[str]()
    for verifier in _verifiers(kind):
        source = inspect.getsource(verifier)
        labels.update(_LABEL.findall(source))
        if "check_takes(" in source:
            labels.add("I1")
        for name in _USES.findall(source):
            labels.update(constraint.label for constraint in verifier.__globals__[name])
        if "super()" not in source:
            break
    return {label for label in labels if re.fullmatch(r"[CI]\d+", label)}


def _verifiers(kind: type[Operation]) -> Iterator[FunctionType]:
    """Yield the verifiers of a class and of its bases.

    xDSL wraps the first verifier, and keeps the wrapped function in the closure of the wrapper.
    """
    for base in kind.__mro__:
        verifier = base.__dict__.get("verify_")
        if isinstance(verifier, FunctionType) and base.__module__.startswith("recompute."):
            wrapped = inspect.getclosurevars(verifier).nonlocals.get("custom_verify", verifier)
            if isinstance(wrapped, FunctionType) and wrapped.__module__.startswith("recompute."):
                yield wrapped


def _ranges(labels: set[str]) -> str:
    """Join labels; consecutive labels are written as a range: `C1-C3, C5, I2`."""
    parts = list[str]()
    for letter in "CI":
        numbers = sorted(int(label[1:]) for label in labels if label[0] == letter)
        for first, last in _runs(numbers):
            parts.append(f"{letter}{first}" if first == last else f"{letter}{first}-{letter}{last}")
    return ", ".join(parts)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each run of consecutive numbers."""
    start = 0
    for index, number in enumerate(numbers):
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            yield numbers[start], number
            start = index + 1


def _facts(facts: Facts | None) -> str:
    if facts is None:
        return ""
    return {
        Effect.PURE: "yes",
        Effect.PURE_IF_BODY_IS: "if its regions are",
        Effect.TERMINATOR: "terminator",
        Effect.IMPURE: f"no: {facts.reason}",
    }[facts.effect]


def _proof(name: str) -> str:
    if name in SEEN_THROUGH:
        return "identity"
    if name in DECOMPOSED:
        return "body"
    if name in COLLECTIVES:
        return "exchange"
    return "function" if name in PURE_OPERATIONS or name in TERMINATORS else "effect"


@cache
def _tested() -> frozenset[str]:
    """Return the names of operations that occur in test files."""
    names = re.compile(r"\b(?:stablehlo|chlo|sdy)\.\w+")
    files = [path for pattern in ("*.py", "*.mlir") for path in (ROOT / "test").rglob(pattern)]
    return frozenset(name for path in files for name in names.findall(path.read_text()))


def _is_tested(name: str) -> bool:
    return name in _tested()


if __name__ == "__main__":
    OUTPUT.write_text(operations_page())
    sys.exit(0)
