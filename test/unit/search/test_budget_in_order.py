"""A budget in program order costs little more with tokens than without: the eager schedule has a limited price."""

from __future__ import annotations

import pytest

import recompute
from recompute.search.budget.preferred_result import MAX_EAGER_COST

LAYERS = 6
ROWS, WEIGHTS = "tensor<64x32xf32>", "tensor<32x32xf32>"


def multilayer_perceptron() -> str:
    """Return a step with the layers `sine(tanh(x w))`, whose gradients are returned without an update."""
    weights = [f"%w{layer}" for layer in range(LAYERS)]
    lines = [f"func.func @step(%s: {ROWS}, {', '.join(f'{weight}: {WEIGHTS}' for weight in weights)}) ->"]
    lines[0] += f" (tensor<f32>, {', '.join([WEIGHTS] * LAYERS)}) {{"
    lines += ["%zero = stablehlo.constant dense<0.0> : tensor<f32>"]
    inputs = ["%s", *(f"%s{layer}" for layer in range(LAYERS))]
    for layer in range(LAYERS):
        lines += [
            f"%z{layer} = stablehlo.dot_general {inputs[layer]}, %w{layer}, contracting_dims = [1] x [0]"
            f" : ({ROWS}, {WEIGHTS}) -> {ROWS}",
            f"%t{layer} = stablehlo.tanh %z{layer} : {ROWS}",
            f"%s{layer} = stablehlo.sine %t{layer} : {ROWS}",
        ]
    lines += [
        f"%loss = stablehlo.reduce({inputs[-1]} init: %zero) applies stablehlo.add across dimensions = [0, 1]"
        f" : ({ROWS}, tensor<f32>) -> tensor<f32>",
        f"%g{LAYERS} = stablehlo.add {inputs[-1]}, {inputs[-1]} : {ROWS}",
    ]
    for layer in reversed(range(LAYERS)):
        lines += [
            f"%c{layer} = stablehlo.cosine %t{layer} : {ROWS}",
            f"%a{layer} = stablehlo.multiply %g{layer + 1}, %c{layer} : {ROWS}",
            f"%q{layer} = stablehlo.multiply %t{layer}, %t{layer} : {ROWS}",
            f"%b{layer} = stablehlo.multiply %a{layer}, %q{layer} : {ROWS}",
            f"%d{layer} = stablehlo.dot_general {inputs[layer]}, %b{layer}, contracting_dims = [0] x [0]"
            f" : ({ROWS}, {ROWS}) -> {WEIGHTS}",
            f"%g{layer} = stablehlo.dot_general %b{layer}, %w{layer}, contracting_dims = [1] x [1]"
            f" : ({ROWS}, {WEIGHTS}) -> {ROWS}",
        ]
    gradients = [f"%d{layer}" for layer in range(LAYERS)]
    lines += [f"func.return %loss, {', '.join(gradients)} : tensor<f32>, {', '.join([WEIGHTS] * LAYERS)}", "}"]
    return "\n".join(lines)


@pytest.mark.parametrize("budget", ["40%", "50%"])
def test_low_eager_peak_has_a_limited_price(budget: str) -> None:
    """Keep the cheapest plan within the budget if a low eager peak would cost more than `MAX_EAGER_COST`."""
    step = multilayer_perceptron()
    with_tokens, without = (
        recompute.rewrite(step, budget=budget, memory_model="order", primal_results=(0,), target=target)
        for target in ("stablehlo", "none")
    )
    for result in (with_tokens, without):
        before, after = result.memory("order")["step"]
        assert after.peak_bytes <= float(budget.rstrip("%")) / 100 * before.peak_bytes
    products = 3 * LAYERS * 2 * 64 * 32 * 32
    assert 0 < with_tokens.extra_flops <= without.extra_flops + 1.1 * MAX_EAGER_COST * products
