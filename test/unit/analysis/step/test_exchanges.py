"""Reasons not to recompute operations with collectives: not permitted, not run alike on all devices, or other
effects."""

from __future__ import annotations

import pytest

from recompute.analysis.step.exchanges import CollectivesInside, why_not_repeatable
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.rules.effects import Permission

SUM = """%{r} = "stablehlo.all_reduce"(%{x}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
   ^bb0(%p: tensor<f32>, %q: tensor<f32>):
     %s = stablehlo.add %p, %q : tensor<f32>
     stablehlo.return %s : tensor<f32>
   }}) : (tensor<4xf32>) -> tensor<4xf32>"""
SAY = '<{call_target_name = "say", has_side_effect = true}>'
CALL = f'%d = "stablehlo.custom_call"(%c) {SAY} : (tensor<4xf32>) -> tensor<4xf32>'


def loop(end: str, more: str = "") -> str:
    return f"""%r:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, tensor<4xf32>
  cond {{
    %m = stablehlo.compare LT, %i, {end}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %m : tensor<i1>
  }} do {{
    {more}
    {SUM.format(r="e", x="c")}
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %e : tensor<i32>, tensor<4xf32>
  }}"""


BRANCH = f"""%r = "stablehlo.if"(%flag) ({{
    {SUM.format(r="e", x="x")}
    stablehlo.return %e : tensor<4xf32>
  }}, {{
    stablehlo.return %x : tensor<4xf32>
  }}) : (tensor<i1>) -> tensor<4xf32>"""


def why(text: str, allowed: bool) -> str | None:
    (function,) = functions_of(
        parse_module(f"""func.func @f(%x: tensor<4xf32>, %n: tensor<i32>, %flag: tensor<i1>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  {text}
  func.return
}}""")
    )
    op = next(op for op in function.body.block.ops if op.regions)
    return why_not_repeatable(op, Permission(collectives=allowed))


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("text", [BRANCH, loop("%n")], ids=["branch", "run-time length"])
def test_device_dependent_collectives_are_not_recomputed(text: str, allowed: bool) -> None:
    assert why(text, allowed) is CollectivesInside.UNEQUAL


def test_collectives_are_recomputed_only_on_request() -> None:
    assert why(loop("%three"), False) is CollectivesInside.NOT_ALLOWED
    assert why(loop("%three"), True) is None


@pytest.mark.parametrize("allowed", [False, True])
def test_another_effect_forbids_recomputation(allowed: bool) -> None:
    reason = why(loop("%three", CALL), allowed)
    assert reason is not None and reason.startswith("it contains stablehlo.custom_call: ")
