"""The order in which copies run. A value of this step has 1024 bytes, the mask %m has 256."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from xdsl.ir import Operation

from recompute.analysis.step.step import Step
from recompute.planning.by_segment.batches import excess_bytes, sequential_batches, split_into_batches
from recompute.test.named_steps import Values, named_step, numbers

T, M = "tensor<256xf32>", "tensor<256xi1>"
P, G = '{recompute.phase = "primal"}', '{recompute.phase = "gradient"}'
STEP = f"""
func.func @f(%x: {T}, %w: {T}, %ct: {T}) -> ({T}, {T}) {{
  %one = stablehlo.constant dense<1.0> : {T}
  %k = stablehlo.negate %one {P} : {T}
  %z = stablehlo.cosine %x {P} : {T}
  %c = stablehlo.multiply %w, %k {P} : {T}
  %a = stablehlo.sine %z {P} : {T}
  %b = stablehlo.tanh %a {P} : {T}
  %v = stablehlo.reshape %b {P} : ({T}) -> tensor<2x128xf32>
  %m = stablehlo.convert %v {P} : (tensor<2x128xf32>) -> tensor<2x128xi1>
  %n = stablehlo.reshape %m {P} : (tensor<2x128xi1>) -> {M}
  %d = stablehlo.select %n, %c, %z {P} : {M}, {T}
  %y = stablehlo.tanh %d {P} : {T}
  %g = stablehlo.multiply %ct, %y {G} : {T}
  %h = stablehlo.multiply %g, %d {G} : {T}
  func.return %y, %h : {T}, {T}
}}
"""


def operations_that_define(step: Step, value: Values, names: str) -> list[int]:
    return step.positions(owner for name in names if isinstance(owner := value[name].owner, Operation))


def names_of(step: Step, values: Iterable[int]) -> str:
    return "".join(step.value(value).name_hint or "?" for value in values)


def test_outside_inputs_are_unique_and_not_constant() -> None:
    step, value = named_step(STEP)
    assert names_of(step, step.graph.outside_of(operations_that_define(step, value, "acd"))) == "zwn"


def test_sequential_groups_wait_for_previous_outputs() -> None:
    step, value = named_step(STEP)
    groups = [operations_that_define(step, value, names) for names in ("kab", "vmn", "cd")]
    batches = sequential_batches(step.graph, groups, set(numbers(step, value, "kbnd")))
    assert [batch.operations for batch in batches] == [tuple(group) for group in groups]
    matches = [(names_of(step, batch.inputs), names_of(step, batch.awaited)) for batch in batches]
    assert matches == [("z", ""), ("", "b"), ("w", "n")]


@pytest.mark.parametrize(
    ("part", "held", "excess"),
    [
        ("a", {}, 0),  # it leaves all that it makes
        ("ab", {}, 1024),  # two at once, one is left
        ("abvmn", {}, 2 * 1024 - 256),  # views have no bytes of their own
        ("abvmn", {"b": 100}, 2 * 1024 + 100 - 256),  # what a loop holds inside
        ("abvmn", {"m": 2000}, 1024 + 256 + 2000 - 256),  # %a is dead by then
        ("abvmnc", {}, 2 * 1024 - 256 - 1024),
        ("kc", {}, 0),  # constants are there anyway
    ],
)
def test_excess_is_peak_above_remaining_bytes(part: str, held: dict[str, int], excess: int) -> None:
    step, value = named_step(STEP)
    inner = {step.graph.maker[step.number(value[name])]: size for name, size in held.items()}
    graph = replace(step.graph, inner_bytes=tuple(inner.get(op, 0) for op in range(len(step.graph))))
    assert excess_bytes(graph, operations_that_define(step, value, part)) == excess


EXCESS = 2 * 1024 - 256


@pytest.mark.parametrize(("freed", "first"), [(4 * EXCESS - 1, "abvmn"), (4 * EXCESS, "cabvmnd")])
def test_separate_batch_must_save_quarter_of_freed_bytes(freed: int, first: str) -> None:
    step, value = named_step(STEP.replace("%c, %z {", "%c, %w {"))
    batches = split_into_batches(step.graph, operations_that_define(step, value, "cabvmnd"), freed)
    assert batches[0].operations == tuple(operations_that_define(step, value, first))


def test_late_batch_reads_inputs_not_in_early_batch() -> None:
    step, value = named_step(STEP.replace("%c, %z {", "%c, %w {"))
    early, late = split_into_batches(step.graph, operations_that_define(step, value, "cabvmnd"), 0)
    assert (names_of(step, early.inputs), names_of(step, early.awaited)) == ("z", "")
    assert (names_of(step, late.inputs), names_of(step, late.awaited)) == ("w", "n")


@pytest.mark.parametrize("held", [0, 4096])
def test_inner_region_bytes_justify_separate_batch(held: int) -> None:
    step, value = named_step(STEP.replace("%c, %z {", "%c, %w {"))
    loop = step.graph.maker[step.number(value["b"])]
    graph = replace(step.graph, inner_bytes=tuple(held * (op == loop) for op in range(len(step.graph))))
    freed = 4 * (EXCESS + 2048)
    assert len(split_into_batches(graph, operations_that_define(step, value, "cabvmnd"), freed)) == (2 if held else 1)
