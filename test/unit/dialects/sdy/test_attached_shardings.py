"""Shardy's constraints on shardings that are attached to functions and to operations of other dialects."""

from __future__ import annotations

import re

import pytest

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
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
        ('[{"x"}]', "has rank 1, but the tensor has rank 2"),
        ('[{"z"}, {}]', 'the mesh has no axis "z"'),
        ('[{"x"}, {"x"}]', 'axis "x" occurs more than once'),
        ('[{}, {}], replicated={"y", "x"}', "replicated axes must be in the order of the mesh"),
        ('[{"y":(1)4}, {}]', "is as large as the full axis: omit its sizes"),
        ("[{}p1, {}]", "dimension 0 has a priority, but it is closed and has no axes"),
        ("[{x}, {}]", "is not a sharding"),
    ],
)
def test_invalid_shardings_are_rejected_everywhere(sharding: str, words: str) -> None:
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(argument=sharding)
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(result=sharding)
    with pytest.raises(Refusal, match=re.escape(words)):
        _verify(value=f"<@mesh, {sharding}>")


def test_sharding_count_and_kind_are_checked() -> None:
    with pytest.raises(Refusal, match="the number of shardings is 2, expected 1, one for each result"):
        _verify(value=f"<@mesh, {GOOD}>, <@mesh, {GOOD}>")
    text = "func.func @f(%0: tensor<8xf32> {sdy.sharding = ATTRIBUTE}) { return }"
    with pytest.raises(Refusal, match=r"the sharding of argument 0 is .* expected the form #sdy.sharding<"):
        verify_module(parse_module(text.replace("ATTRIBUTE", '"x"')))


def test_missing_meshes_are_accepted() -> None:
    _verify(argument='[{"z"}]', result='[{"z"}]', value='<@mesh, [{"z"}]>', mesh="other")


def test_bad_priorities_and_axis_lists_are_rejected() -> None:
    for sharding in ("[{?}p01, {}]", "[{?}p9999999999999999999, {}]", '[{}, {}], replicated={"x"}, replicated={"y"}'):
        with pytest.raises(Refusal):
            _verify(argument=sharding)


def test_sharding_of_an_effect_has_no_dimensions() -> None:
    text = """
#sharding = #sdy.sharding_per_value<[<@one, [DIMENSIONS]>]>
sdy.mesh @one = <[], device_ids=[0]>
func.func @f(%0: tensor<8xf32>) {
  stablehlo.custom_call @g(%0) {has_side_effect = true, sdy.sharding = #sharding} : (tensor<8xf32>) -> ()
  return
}
"""
    verify_module(parse_module(text.replace("DIMENSIONS", "")))
    with pytest.raises(Refusal, match="must have rank 0 and no replicated or unreduced axes"):
        verify_module(parse_module(text.replace("DIMENSIONS", "{}")))


def test_sharding_of_an_unranked_tensor_is_rejected() -> None:
    text = """
sdy.mesh @mesh = <["x"=2]>
func.func @f(%0: TYPE {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}
"""
    verify_module(parse_module(text.replace("TYPE", '!mpmd.mesh_tensor<"m", tensor<8xf32>>')))
    with pytest.raises(Refusal, match="only ranked tensors can have a sharding"):
        verify_module(parse_module(text.replace("TYPE", "tensor<*xf32>")))


def test_meshes_and_shardings_print_as_jaxlib_prints_them() -> None:
    text = """
sdy.mesh @mesh = #sdy.mesh<["x"=2]>
func.func @f(%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  %1 = sdy.all_slice [{"x"}] %0 out_sharding=#sdy.sharding<@mesh, [{"x"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""
    module = parse_module(text)
    verify_module(module)
    assert '%1 = sdy.all_slice [{"x"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<8xf32>' in print_module(module)
