"""Which copies run first. A value of this step has 1024 bytes, the mask %m 256."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation, SSAValue

from recompute.analysis.copies.stages import excess_bytes, in_turn, outside_values, split
from recompute.test.named_steps import Values, named_step

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


def makers(value: Values, names: str) -> list[Operation]:
    return [owner for name in names if isinstance(owner := value[name].owner, Operation)]


def names_of(values: tuple[SSAValue, ...]) -> str:
    return "".join(value.name_hint or "?" for value in values)


def test_what_comes_from_outside_is_listed_once_and_without_constants() -> None:
    step, value = named_step(STEP)
    assert names_of(outside_values(step, makers(value, "acd"))) == "zwn"


def test_groups_in_turn_wait_for_what_the_one_before_leaves() -> None:
    step, value = named_step(STEP)
    groups = [makers(value, names) for names in ("kab", "vmn", "cd")]
    stages = in_turn(step, groups, {value[name] for name in "kbnd"})
    assert [stage.originals for stage in stages] == [tuple(group) for group in groups]
    assert [(names_of(stage.inputs), names_of(stage.awaited)) for stage in stages] == [("z", ""), ("", "b"), ("w", "n")]


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
def test_excess_is_the_peak_beyond_what_is_left(part: str, held: dict[str, int], excess: int) -> None:
    step, value = named_step(STEP)
    operations = makers(value, part)
    inner = {op: held.get(op.results[0].name_hint or "", 0) for op in operations}
    assert excess_bytes(step, operations, inner) == excess


EXCESS = 2 * 1024 - 256


@pytest.mark.parametrize(("freed", "first"), [(4 * EXCESS - 1, "abvmn"), (4 * EXCESS, "cabvmnd")])
def test_a_stage_of_its_own_is_worth_a_quarter_of_what_is_freed(freed: int, first: str) -> None:
    step, value = named_step(STEP.replace("%c, %z {", "%c, %w {"))
    stages = split(step, makers(value, "cabvmnd"), freed)
    assert stages[0].originals == tuple(makers(value, first))


def test_the_late_stage_reads_what_the_early_one_does_not() -> None:
    step, value = named_step(STEP.replace("%c, %z {", "%c, %w {"))
    early, late = split(step, makers(value, "cabvmnd"), 0)
    assert (names_of(early.inputs), names_of(early.awaited)) == ("z", "")
    assert (names_of(late.inputs), names_of(late.awaited)) == ("w", "n")
