"""Shardings among the attributes of functions and of operations of other dialects: Shardy's constraints on each."""

from __future__ import annotations

import re

import pytest

from recompute.driver.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal

GOOD = '[{"x"}, {}]'


def _verify(argument: str = GOOD, result: str = GOOD, value: str = f"<@mesh, {GOOD}>", mesh: str = "mesh") -> None:
    text = f"""
sdy.mesh @{mesh} = <["x"=2, "y"=4]>
func.func @f(%0: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {argument}>}})
    -> (tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
  %1 = stablehlo.add %0, %0 {{sdy.sharding = #sdy.sharding_per_value<[{value}]>}} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}}
"""
    verify_module(parse_module(text))


def test_valid_shardings_are_accepted() -> None:
    _verify()
    _verify(argument='[{"x", "y"}, {?}p1]', result='[{}, {"y":(1)2}], replicated={"x"}')


@pytest.mark.parametrize(
    ("sharding", "words"),
    [
        ('[{"x"}]', "doesn't match tensor rank: 1 != 2"),
        ('[{"z"}, {}]', 'unknown axis name: "z"'),
        ('[{"x"}, {"x"}]', 'duplicate axis ref: "x"'),
        ('[{}, {}], replicated={"y", "x"}', "replicated axes are not ordered w.r.t. mesh"),
        ('[{"y":(1)4}, {}]', "sub-axis size is equal to the full axis size"),
        ("[{}p1, {}]", "dim 0 is empty and closed but has a priority"),
        ("[{x}, {}]", "is not a sharding"),
    ],
)
def test_invalid_shardings_are_refused_wherever_they_stand(sharding: str, words: str) -> None:
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(argument=sharding)
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(result=sharding)
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(value=f"<@mesh, {sharding}>")


def test_the_number_and_the_kind_of_the_attribute_are_checked() -> None:
    with pytest.raises(Refusal, match="there are 2 shardings for 1 results"):
        _verify(value=f"<@mesh, {GOOD}>, <@mesh, {GOOD}>")
    text = "func.func @f(%0: tensor<8xf32> {sdy.sharding = ATTRIBUTE}) { return }"
    with pytest.raises(Refusal, match=r"the sharding of argument 0 is .* expected one of the form #sdy.sharding<"):
        verify_module(parse_module(text.replace("ATTRIBUTE", '"x"')))


def test_meshes_may_be_missing() -> None:
    _verify(argument='[{"z"}]', result='[{"z"}]', value='<@mesh, [{"z"}]>', mesh="other")
