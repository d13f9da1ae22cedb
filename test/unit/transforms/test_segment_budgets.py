"""Budgets per segment, with bytes counted by `segment_meter`, which shares no code with the passes, and results
executed."""

from __future__ import annotations

from random import Random

import pytest

from recompute.driver.api import rewrite
from recompute.driver.rewrites.rewritten import Rewritten
from recompute.interpreters.execute_check import PreparedPair
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.plan import Plan
from recompute.support.diagnostics import Refusal
from recompute.test.property.checks import is_executable
from recompute.test.property.programs import Program, generate
from recompute.test.property.requests import step_of
from recompute.test.unit.transforms.segment_meter import saved_by_scope
from recompute.transforms.preparation.flatten import drop_dead
from recompute.transforms.preparation.timelines import flat_copy

PROGRAMS = 40
SHARES = (30, 50, 70, 90)
STEP = """
func.func @step(%x: tensor<256xf32>, %w: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %a = stablehlo.sine %x : tensor<256xf32> loc("jit(f)/jvp(layer0)/sin")
  %b = stablehlo.multiply %a, %w : tensor<256xf32> loc("jit(f)/jvp(layer0)/mul")
  %c = stablehlo.tanh %b : tensor<256xf32> loc("jit(f)/jvp(layer0)/tanh")
  %d = stablehlo.sine %c : tensor<256xf32> loc("jit(f)/jvp(layer1)/sin")
  %e = stablehlo.multiply %d, %w : tensor<256xf32> loc("jit(f)/jvp(layer1)/mul")
  %f = stablehlo.tanh %e : tensor<256xf32> loc("jit(f)/jvp(layer1)/tanh")
  %y = stablehlo.negate %f : tensor<256xf32> loc("jit(f)/jvp(head)/neg")
  %g = stablehlo.multiply %y, %f : tensor<256xf32> loc("jit(f)/transpose(jvp(head))/mul")
  %h = stablehlo.multiply %g, %e : tensor<256xf32> loc("jit(f)/transpose(jvp(layer1))/mul")
  %i = stablehlo.multiply %h, %d : tensor<256xf32> loc("jit(f)/transpose(jvp(layer1))/mul")
  %j = stablehlo.multiply %i, %b : tensor<256xf32> loc("jit(f)/transpose(jvp(layer0))/mul")
  %k = stablehlo.multiply %j, %a : tensor<256xf32> loc("jit(f)/transpose(jvp(layer0))/mul")
  func.return %y, %k : tensor<256xf32>, tensor<256xf32>
}
"""
"""layer0 saves %a and %b, layer1 %d, %e and %f, which head reads too: 1024 bytes each."""


def saved(text: str, result: Rewritten, scopes: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes saved by scope, before and after."""
    plain = flat_copy(parse_module(text, "step"))
    drop_dead(plain)
    return saved_by_scope(plain, scopes), saved_by_scope(flat_copy(result.module), scopes)


def rewritten(budgets: dict[str, str | float], **request: object) -> tuple[dict[str, int], Rewritten]:
    result = rewrite(STEP, RecomputeOptions(segment_budgets=budgets, calls=False, **request))  # pyright: ignore[reportArgumentType]
    before, after = saved(STEP, result, ("layer0", "layer1"))
    assert before == {"layer0": 2048, "layer1": 3072}
    return after, result


def test_bytes_and_copies_are_as_counted_by_hand():
    after, result = rewritten({"layer0": "50%"})
    assert after == {"layer0": 1024, "layer1": 3072}
    # %b alone runs again: it is cheaper than %a and %b, and as dear as %a.
    assert result.copies == 1 and result.extra_flops == 256


def test_segment_may_be_recomputed_from_a_value_of_another():
    """The value %c is saved in layer0, in place of its own values, to recompute half of layer1 from it."""
    after, result = rewritten({"layer0": "50%", "layer1": "2KiB"})
    assert after["layer0"] <= 1024 and after["layer1"] <= 2048 and result.copies >= 2


def test_jointly_infeasible_budgets_are_rejected():
    """Two budgets that fit one at a time are refused together: layer1 needs %c of layer0, which may keep nothing."""
    with pytest.raises(Refusal, match="no plan meets the budgets of all segments together"):
        rewritten({"layer0": "1B", "layer1": "1KiB"})
    after, _ = rewritten({"layer0": "1B"})
    assert after == {"layer1": 3072}
    after, _ = rewritten({"layer1": "1KiB"})
    assert after["layer1"] == 1024 and after["layer0"] == 3072


def test_budgets_may_be_shares_or_bytes():
    assert rewritten({"layer*": 1.0})[0] == {"layer0": 2048, "layer1": 3072}
    assert rewritten({"layer0": 1024})[0]["layer0"] == 1024
    with pytest.raises(ValueError, match=r"layer0: invalid budget 1\.5: "):
        rewritten({"layer0": 1.5})


def test_budgets_with_a_plan_or_planner_are_rejected():
    with pytest.raises(ValueError, match="plan= and segment_budgets= both select the values to recompute"):
        rewritten({"layer0": "50%"}, plan=())


def test_user_marks_take_precedence():
    kept = STEP.replace("sine %x :", "sine %x {recompute.recompute = false} :")
    kept = kept.replace("multiply %a, %w :", 'multiply %a, %w {recompute.recompute = "must_save"} :')
    with pytest.raises(Refusal, match=r"proven minimum is 2.0 KiB \(2048 bytes\); .*: it is marked to be saved"):
        rewrite(kept, RecomputeOptions(segment_budgets={"layer0": "50%"}))
    again = STEP.replace("sine %x :", "sine %x {recompute.recompute = true} :")
    result = rewrite(again, RecomputeOptions(segment_budgets={"layer0": "100%"}, calls=False))
    assert saved(STEP, result, ("layer0",))[1] == {"layer0": 1024}


def test_parsed_plan_reproduces_the_program():
    _, result = rewritten({"layer0": "50%", "layer1": "2KiB"})
    assert rewrite(STEP, RecomputeOptions(plan=result.plan_text, calls=False)).text == result.text


def test_segment_and_step_budgets_are_both_kept():
    for model, budget in (("order", "70%"), ("order", "100%")):
        after, result = rewritten({"layer0": "50%"}, budget=budget, memory_model=model)
        assert after.get("layer0", 0) <= 1024
        ((before, now),) = result.memory(model).values()
        assert now.peak_bytes <= float(budget.strip("%")) / 100 * before.peak_bytes


def test_segment_budget_in_a_loop_is_rejected():
    text = """
    func.func @step(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %n = stablehlo.constant dense<4> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %i, %y = stablehlo.while(%at = %zero, %h = %x) : tensor<i32>, tensor<8xf32>
      cond {
        %less = stablehlo.compare LT, %at, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %less : tensor<i1>
      } do {
        %s = stablehlo.sine %h : tensor<8xf32> loc("jit(f)/jvp(while)/body/layer/sin")
        %next = stablehlo.add %at, %one : tensor<i32>
        stablehlo.return %next, %s : tensor<i32>, tensor<8xf32>
      } loc("jit(f)/jvp()/while")
      %z = stablehlo.tanh %y : tensor<8xf32> loc("jit(f)/jvp(top)/tanh")
      %g = stablehlo.multiply %z, %y : tensor<8xf32> loc("jit(f)/transpose(jvp(top))/mul")
      func.return %z, %g : tensor<8xf32>, tensor<8xf32>
    }
    """
    with pytest.raises(Refusal, match="is inside a loop or a branch, which counts as a single operation; to limit"):
        rewrite(text, RecomputeOptions(segment_budgets={"layer": "50%"}))


def budgets_for(program: Program, dice: Random) -> dict[str, str | float]:
    share = dice.choice(SHARES)
    return {scope: f"{share}%" for scope in program.scopes}


@pytest.mark.slow
def test_random_programs_keep_segment_budgets_and_bits():
    written = 0
    for seed in range(PROGRAMS):
        program, dice = generate(seed), Random(seed)
        budgets = budgets_for(program, dice)
        target = dice.choice(("none", "stablehlo"))
        try:
            result = rewrite(program.text, RecomputeOptions(segment_budgets=budgets, calls=False, target=target))
        except Refusal as error:
            assert "proven minimum" in error.reason or "which is proved" in error.reason, (seed, error)
            continue
        before, after = saved(program.text, result, program.scopes)
        for scope, size in after.items():
            share = float(str(budgets[scope]).strip("%")) / 100
            assert size <= share * before.get(scope, 0), (seed, scope, before, after)
        plain = parse_module(program.text, "step")
        if result.copies and is_executable(plain):
            proof = PreparedPair.of(plain, result.module).compare(random_inputs(step_of(plain), 0, "random"))
            assert proof.equal, (seed, proof.difference)
        written += result.copies > 0
    assert written > PROGRAMS // 2


def test_empty_plan_leaves_saved_bytes_unchanged():
    """The saved bytes are the same before and after an empty plan, so that a fall of the count is meaningful."""
    program = generate(0)
    result = rewrite(program.text, RecomputeOptions(planner=lambda _: Plan(), calls=False))
    before, after = saved(program.text, result, program.scopes)
    assert before == after and sum(before.values()) > 0


@pytest.mark.slow
def test_random_programs_keep_both_budgets():
    written = 0
    for seed in range(12):
        program, dice = generate(seed), Random(seed)
        scope, share = dice.choice(program.scopes), dice.choice((60, 80, 100))
        result = RecomputeOptions(segment_budgets={scope: f"{share}%"}, budget="70%", calls=False, target="none")
        try:
            actual = rewrite(program.text, result)
        except Refusal:
            continue
        before, after = saved(program.text, actual, (scope,))
        assert after.get(scope, 0) <= share / 100 * before.get(scope, 0), (seed, before, after)
        ((plain, now),) = actual.memory("order").values()
        assert now.peak_bytes <= 0.7 * plain.peak_bytes, seed
        written += actual.copies > 0
    assert written > 5
