"""The network of Paddle's Fleet page on recomputation: five blocks. Recomputing two of them does not change the losses.

    python examples/paddle_network.py [--width 512 --batch 1024] [--folder demo]

Each block applies linear, dropout, relu, linear, relu and linear layers, without biases. The training consists of five
steps of gradient descent. The script prints the losses without recomputation and with blocks 1 and 2 recomputed. It
also prints the memory that XLA needs for these two steps, and for a step with `jax.checkpoint` around blocks 1 and 2.
It writes a chart of both memory timelines.
"""

# pyright: basic

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import recompute
from recompute.frontends.jax.compilation.allocation import temporary_bytes
from recompute.reports.memory_timeline import to_svg
from recompute.support.units import format_bytes

BLOCKS, STEPS, RATE, LEARNING_RATE, SEED = 5, 5, 0.5, 0.01, 10
RECOMPUTED = (1, 2)
Call = Callable[..., Any]


def block(weights: Sequence[Any], x: Any, key: Any) -> Any:
    """Map (batch, width) to (batch, width), or to (batch, 1) in the last block."""
    first, second, third = weights
    hidden = x @ first
    kept = jnp.where(jax.random.bernoulli(key, 1 - RATE, hidden.shape), hidden / (1 - RATE), 0.0)
    return jax.nn.relu(jax.nn.relu(kept) @ second) @ third


def plainly(function: Call, *args: Any) -> Any:
    return function(*args)


def checkpointed(function: Call, *args: Any) -> Any:
    return jax.checkpoint(function)(*args)


def train_step(parameters: Any, x: Any, key: Any, recompute_blocks: Sequence[int], call: Call) -> tuple[Any, Any]:
    """Return the loss, and the parameters after one step of gradient descent."""

    def loss(parameters: Any) -> Any:
        y = x
        for index, weights in enumerate(parameters):
            method = call if index in recompute_blocks else plainly
            y = method(block, weights, y, jax.random.fold_in(key, index))
        return jnp.mean(y)

    value, gradients = jax.value_and_grad(loss)(parameters)
    return value, jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients)


def start(width: int) -> list[list[Any]]:
    """Draw the initial weights as in Paddle (Xavier), of shape (width, width), or (width, 1) in the last layer."""
    shapes = [[(width, width), (width, width), (width, width if n < BLOCKS - 1 else 1)] for n in range(BLOCKS)]
    keys = iter(jax.random.split(jax.random.key(SEED), 3 * BLOCKS))
    draw = jax.nn.initializers.glorot_uniform()
    return [[draw(next(keys), shape) for shape in block] for block in shapes]


def run(step: Call, width: int, batch: int) -> list[float]:
    """Run `STEPS` steps, and return their losses."""
    parameters, losses = start(width), list[float]()
    for index in range(STEPS):
        x = jax.random.uniform(jax.random.fold_in(jax.random.key(SEED), index), (batch, width))
        loss, parameters = step(parameters, x, jax.random.key(index))
        losses.append(float(loss))
    return losses


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=10, help="the width of the layers (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="the batch size (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="the folder for the chart")
    options = parser.parse_args(arguments)

    def step_with(blocks: Sequence[int], call: Call) -> Call:
        return partial(train_step, recompute_blocks=blocks, call=call)

    plain = jax.jit(step_with([], plainly))
    with_recompute = recompute.jax.jit(step_with(RECOMPUTED, recompute.jax.paddle.recompute), measure=False)
    kept = {"xla_disable_hlo_passes": "cse_barrier_expander"} if jax.default_backend() == "cpu" else None
    with_checkpoint = jax.jit(step_with(RECOMPUTED, checkpointed), compiler_options=kept)

    provided = start(options.width), jnp.ones((options.batch, options.width)), jax.random.key(0)
    lowered = with_recompute.lower(*provided)
    compiled_steps = {
        "none": plain.lower(*provided).compile(),
        "blocks 1 and 2": lowered.compile(),
        "jax.checkpoint": with_checkpoint.lower(*provided).compile(),
    }
    normal, ours = (run(compiled_steps[name], options.width, options.batch) for name in ("none", "blocks 1 and 2"))
    print(f"normal_loss: {normal}, recompute_loss: {ours}")
    assert normal == ours, "recomputation must not change the losses"
    for name, compiled in compiled_steps.items():
        print(f"temporaries, {name}: {format_bytes(temporary_bytes(compiled) or 0)}")
    if lowered.rewritten is not None:
        ((before, after),) = lowered.rewritten.memory().values()
        options.folder.mkdir(parents=True, exist_ok=True)
        picture = options.folder / "paddle_network.memory.svg"
        picture.write_text(to_svg([("no block", before), ("blocks 1 and 2", after)], "Paddle's five blocks"))
        print(f"chart: {picture}")


if __name__ == "__main__":
    main()
