"""The count of merged operations in `cse`, and removal of dead ones; its rules are in
test/filecheck/transforms/cse.mlir."""

from __future__ import annotations

import pytest

from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.support.operations import name_of
from recompute.transforms.cse import cse

T = "tensor<8xf32>"
STEP = f"""
func.func @f(%x: {T}) -> ({T}, {T}) {{
  %dead = stablehlo.cosine %x : {T}
  %deader = stablehlo.negate %dead : {T}
  %a = stablehlo.sine %x : {T}
  %b = stablehlo.sine %x : {T}
  %c = stablehlo.tanh %a : {T}
  %d = stablehlo.tanh %b : {T}
  func.return %c, %d : {T}, {T}
}}
"""


def test_cse_returns_the_number_of_merged_operations() -> None:
    module = parse_module(STEP)
    assert cse(module) == 4
    assert [name_of(op) for op in module.walk()][2:] == ["stablehlo.sine", "stablehlo.tanh", "func.return"]
    assert cse(module) == 0


def test_merged_operation_leaves_no_uses() -> None:
    module = parse_module(STEP)
    cse(module)
    sine, tanh, _ = list(module.walk())[2:]
    assert [use.operation for use in sine.operands[0].uses] == [sine]
    assert [use.operation for use in sine.results[0].uses] == [tanh]


def step(first: str, second: str) -> str:
    """Return a function with both texts, in which %1 is renamed so that they do not clash."""
    return f"""
func.func @f(%x: {T}, %i: tensor<i32>) -> ({T}, {T}) {{
  {first.replace("%1", "%a")}
  {second.replace("%1", "%b")}
  func.return %a, %b : {T}, {T}
}}
"""


def case(*branches: str) -> str:
    inside = ", ".join(f"{{\n{branch}\nstablehlo.return %r : {T}\n}}" for branch in branches)
    return f'%1 = "stablehlo.case"(%i) ({inside}) : (tensor<i32>) -> {T}'


def branch(name: str) -> str:
    return f"%r = stablehlo.{name} %x : {T}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (Names.ID, "3 : i64"),
        (Names.NEED_CSE, "unit"),
        (Names.TARGET_GRAD, "unit"),
        (Names.CHECKPOINT, "unit"),
        (Names.PHASE, '"primal"'),
    ],
)
def test_pass_attributes_do_not_prevent_merging(name: str, value: str) -> None:
    noted = f"%1 = stablehlo.sine %x {{{name} = {value}}} : {T}"
    assert cse(parse_module(step(noted, f"%1 = stablehlo.sine %x : {T}"))) == 1


@pytest.mark.parametrize("name", [Names.TARGET_GRAD, Names.CHECKPOINT])
def test_informational_attributes_survive_merging(name: str) -> None:
    module = parse_module(step(f"%1 = stablehlo.sine %x : {T}", f"%1 = stablehlo.sine %x {{{name} = unit}} : {T}"))
    cse(module)
    (sine,) = (op for op in module.walk() if name_of(op) == "stablehlo.sine")
    assert name in sine.attributes


def test_operations_with_equal_regions_are_merged() -> None:
    item = case(branch("sine"), branch("tanh"))
    assert cse(parse_module(step(item, item))) == 1 + 4


@pytest.mark.parametrize("other", [case(branch("sine"), branch("cosine")), case(branch("sine"))])
def test_operations_with_different_regions_are_not_merged(other: str) -> None:
    assert cse(parse_module(step(case(branch("sine"), branch("tanh")), other))) == 0


def test_equal_operations_in_a_region_are_merged() -> None:
    inside = f"%s = stablehlo.sine %x : {T}\n%t = stablehlo.sine %x : {T}\n%r = stablehlo.add %s, %t : {T}"
    assert cse(parse_module(step(case(inside), case(branch("tanh"))))) == 1


@pytest.mark.parametrize(
    "text",
    [
        f'%1 = "test.unknown"(%x) : ({T}) -> {T}',
        f"%1t = recompute.token %x : {T}\n%1 = recompute.depend %x after %1t : {T}",
    ],
)
def test_unknown_effects_and_tokens_are_not_merged(text: str) -> None:
    """Unknown effects and tokens are not merged: each token has its own position in the backward pass."""
    assert cse(parse_module(step(text, text))) == 0
