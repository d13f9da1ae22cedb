"""Scope options for random operations with a hidden state; other cases are in `take-scopes.mlir`."""

from __future__ import annotations

import pytest

from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.support.operations import name_of
from recompute.transforms.take_scopes import take_scopes

DRAW = """
func.func public @main(%a: tensor<f32>, %n: tensor<1xi64>) -> tensor<8xf32> {
  %u = "stablehlo.rng"(%a, %a, %n) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}>
    : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32> loc("jit(f)/jvp(recompute:block@0SAID)/rng")
  func.return %u : tensor<8xf32>
}
"""


@pytest.mark.parametrize(("message", "repeatable"), [("", False), ("-preserve_rng_state", True)])
def test_hidden_state_draw_is_repeated_only_on_request(message: str, repeatable: bool):
    module = parse_module(DRAW.replace("SAID", message))
    assert take_scopes(module) == 1
    (draw,) = (op for op in module.walk() if name_of(op) == "stablehlo.rng")
    assert (Names.REPEATABLE in draw.attributes) == repeatable
    assert Names.RECOMPUTE not in draw.attributes
