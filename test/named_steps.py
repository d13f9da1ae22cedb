"""Hand-written steps for tests that refer to values by their names."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from recompute.analysis.step.order import functions_of, single_block
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.mlir_io.parser import parse_module

Values = dict[str | None, SSAValue]


def numbers(step: Step, value: Values, names: Iterable[str]) -> list[int]:
    """Return the numbers of these values in the step's graph."""
    return [step.number(value[name]) for name in names]


def named_step(text: str) -> tuple[Step, Values]:
    """Return the step of the first function of a module, and the values of its block by name."""
    function = functions_of(parse_module(text))[0]
    actual = phases(function)
    assert actual is not None
    block = single_block(function)
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    return Step.of(actual), {value.name_hint: value for value in values}
