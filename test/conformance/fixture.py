"""Smallest net of Paddle's own tests: mul, add, add, mean, with gradient operations that read the same values.

    mean_grad(b2_out), add_grad(b1_out), add_grad(mul_out), mul_grad(x, w)

The gradient operations are unregistered: only the forward values that they read matter.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from recompute.support.operations import name_of
from recompute.test.conformance.programs import classified, forward, step

M = "tensor<4x4xf32>"
KINDS = {"stablehlo.dot_general": "mul", "stablehlo.add": "add"}


def fixture(mul: str, first: str, second: str) -> ModuleOp:
    """Return the net with its three operations in the named scopes; the values are %mul_out, %b1_out and %b2_out."""
    return step(
        forward(
            "mul_out",
            "dot_general %x, %w, contracting_dims = [1] x [0]",
            mul,
            types=f"({M}, {M}) -> {M}",
        ),
        forward("b1_out", "add %mul_out, %b1", f"{first}/first", types=M),
        forward("b2_out", "add %b1_out, %b2", f"{second}/second", types=M),
        '  %zero = stablehlo.constant dense<0.0> : tensor<f32> loc("jit(f)")',
        "  %mean = stablehlo.reduce(%b2_out init: %zero) applies stablehlo.add across dimensions = [0, 1] : "
        f'({M}, tensor<f32>) -> tensor<f32> loc("jit(f)/jvp()/mean")',
        _gradient("g3", "mean_grad", "%ct", "%b2_out"),
        _gradient("g2", "add_grad", "%g3", "%b1_out"),
        _gradient("g1", "add_grad", "%g2", "%mul_out"),
        _gradient("gw", "mul_grad", "%g1", "%x"),
        arguments=f"%x: {M}, %w: {M}, %b1: {M}, %b2: {M}, %ct: {M}",
        returns="%mean, %g2, %g1, %gw",
        types=f"tensor<f32>, {M}, {M}, {M}",
    )


def _gradient(result: str, name: str, cotangent: str, value: str) -> str:
    location = f'loc("jit(f)/transpose(jvp())/{name}")'
    return f'  %{result} = "paddle.{name}"({cotangent}, {value}) : ({M}, {M}) -> {M} {location}'


def backward_operations(module: ModuleOp) -> list[str]:
    """Return the gradient operations in program order without tokens; copies have a star, as in Paddle's tests."""
    classes = classified(module)
    named = [name_of(op) for op in classes.order.operations if classes.is_gradient(op)]
    kinds = [f"{KINDS[name]}*" if name in KINDS else name.removeprefix("paddle.") for name in named]
    return [kind for kind in kinds if not kind.startswith(("recompute.", "func."))]
