"""The branches of a copied conditional move into its gradient, unless other operations read its results."""

from __future__ import annotations

import pytest

from recompute.driver.verification.step_input import as_module
from recompute.transforms.rolled.merge_copied_branches import merge_copied_branches

STEP = """
func.func @main(%flag: tensor<i32>, %other: tensor<i32>, %x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {{
  %s = "stablehlo.case"(%flag) ({{
    stablehlo.return %x : tensor<4xf32>
  }}, {{
    %c = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %c : tensor<4xf32>
  }}) {attributes} : (tensor<i32>) -> tensor<4xf32>
  %g = "stablehlo.case"({predicate}) ({{
    stablehlo.return %dy : tensor<4xf32>
  }}, {{
    %m = stablehlo.multiply %dy, %s : tensor<4xf32>
    stablehlo.return %m : tensor<4xf32>
  }}) : (tensor<i32>) -> tensor<4xf32>
  func.return {result} : tensor<4xf32>
}}
"""
COPY = "{recompute.copy = 1 : i64}"


def text_of(attributes: str = COPY, predicate: str = "%flag", result: str = "%g") -> str:
    return STEP.format(attributes=attributes, predicate=predicate, result=result)


def test_branches_of_a_copy_move_into_its_gradient():
    module = as_module(text_of())
    assert merge_copied_branches(module) == 1
    module.verify()
    text = str(module)
    assert text.count('"stablehlo.case"') == 1
    cosine, multiply = text.index("stablehlo.cosine"), text.index("stablehlo.multiply")
    assert text.index('"stablehlo.case"') < cosine < multiply
    assert "recompute.copy" in text[cosine:multiply]


@pytest.mark.parametrize(
    "text",
    [text_of(attributes=""), text_of(predicate="%other"), text_of(result="%s")],
    ids=["original", "other-predicate", "other-reader"],
)
def test_other_conditionals_stay(text: str):
    module = as_module(text)
    before = str(module)
    assert merge_copied_branches(module) == 0
    assert str(module) == before
