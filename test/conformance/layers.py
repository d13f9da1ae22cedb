"""A network of n x (fc + relu), written so that each gradient reads the same values as in Paddle's static programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp

from recompute.test.conformance.programs import backward, forward, step

M = "tensor<16x16xf32>"


def matmul(line: Callable[..., str], result: str, left: str, right: str, sides: str, scope: str) -> str:
    text = f"dot_general {left}, {right}, contracting_dims = {sides}"
    return line(result, text, scope, types=f"({M}, {M}) -> {M}")


def layer(index: int, x: str, scope: str) -> tuple[str, ...]:
    """Return the lines of fc + relu: %m, %s and %r with the index are Paddle's mul, elementwise_add and relu."""
    return (
        matmul(forward, f"m{index}", x, f"%w{index}", "[1] x [0]", scope),
        forward(f"s{index}", f"add %m{index}, %c{index}", scope, types=M),
        forward(f"r{index}", f"maximum %s{index}, %zero", scope, types=M),
    )


def layer_gradients(index: int, x: str, cotangent: str, scope: str) -> tuple[str, ...]:
    """Return the gradients of a layer: relu_grad reads the relu's result, mul_grad the layer's input."""
    return (
        backward(f"p{index}", f"compare GT, %r{index}, %zero", scope, types=f"({M}, {M}) -> tensor<16x16xi1>"),
        backward(f"t{index}", f"select %p{index}, {cotangent}, %zero", scope, types=f"tensor<16x16xi1>, {M}"),
        matmul(backward, f"v{index}", x, f"%t{index}", "[0] x [0]", scope),
        matmul(backward, f"u{index}", f"%t{index}", f"%w{index}", "[1] x [1]", scope),
    )


# The 4 x (fc + relu) of the static optimizer with checkpoints behind layers 0 and 2.
FOUR = ("segment0", "segment1", "segment1", "tail")


def mlp(scopes: Sequence[str] = FOUR) -> ModuleOp:
    """Return a network with a layer in each scope, whose results are the gradients. The relu of layer i is %ri."""
    # Layers of one scope stand at different places of the source.
    places = [f"{scope}/layer{index}" for index, scope in enumerate(scopes)]
    count = len(scopes)
    inputs = ("%x", *(f"%r{index}" for index in range(count - 1)))
    zero = f'  %zero = stablehlo.constant dense<0.0> : {M} loc("jit(f)")'
    lines = [zero]
    for index in range(count):
        lines.extend(layer(index, inputs[index], places[index]))
    cotangent = "%ct"
    for index in reversed(range(count)):
        lines.extend(layer_gradients(index, inputs[index], cotangent, places[index]))
        cotangent = f"%u{index}"
    parameters = ", ".join(f"%w{index}: {M}, %c{index}: {M}" for index in range(count))
    returned = [f"%r{count - 1}", *(f"%v{index}" for index in range(count)), *(f"%t{index}" for index in range(count))]
    return step(
        *lines,
        returns=", ".join(returned),
        arguments=f"%x: {M}, %ct: {M}, {parameters}",
        types=", ".join([M] * len(returned)),
    )
