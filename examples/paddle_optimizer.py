"""The network of Paddle's `RecomputeOptimizer` page: Adam, with `fc_1` and `pred` as checkpoints.

    python examples/paddle_optimizer.py [--rows 32 --features 32 --hidden 128] [--folder demo]

The script runs ten steps with `minimize`, then the same steps with `backward` and `apply_gradients`, and with
`backward` and `apply_optimize`. It writes a chart of the memory before and after recomputation. In this example,
recomputation frees no memory, because the backward pass reads only the checkpoints; a warning reports this.
"""

# pyright: basic

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.ad_checkpoint import checkpoint_name

import recompute
from recompute.reports.memory_timeline import to_svg

STEPS, LABELS = 10, 2
Parameters = dict[str, dict[str, Any]]


def gen_data(number: int, rows: int, features: int) -> tuple[Any, Any]:
    """Draw x of shape (rows, features) between 0 and 1, and labels y of shape (rows,) that are 0 or 1."""
    of_x, of_y = jax.random.split(jax.random.key(number))
    return jax.random.uniform(of_x, (rows, features)), jax.random.randint(of_y, (rows,), 0, LABELS)


def fc(parameters: dict[str, Any], x: Any) -> Any:
    return x @ parameters["w"] + parameters["b"]


def mlp(parameters: Parameters, x: Any, y: Any) -> Any:
    """Return the cost, a scalar. Paddle identifies checkpoints by variables, this script by names."""
    fc_1 = checkpoint_name(fc(parameters["fc_0"], x), "fc_1")
    prediction = checkpoint_name(jax.nn.softmax(fc(parameters["fc_1"], fc_1)), "pred")
    cost = -jnp.log(jnp.take_along_axis(prediction, y[:, None], axis=1))
    return jnp.mean(cost)


def start(features: int, hidden: int) -> Parameters:
    draw, keys = jax.nn.initializers.glorot_uniform(), jax.random.split(jax.random.key(0))
    shapes = {"fc_0": (features, hidden), "fc_1": (hidden, LABELS)}
    return {
        name: {"w": draw(key, shape), "b": jnp.zeros(shape[1])}
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def variants(adam: recompute.jax.paddle.RecomputeOptimizer) -> dict[str, Callable[..., Any]]:
    """Return the three variants of a step. Each maps a program and a batch to the program after the step."""

    def minimize(program: Any, x: Any, y: Any) -> Any:
        return adam.minimize(lambda parameters: mlp(parameters, x, y), program)[0]

    def apply_gradients(program: Any, x: Any, y: Any) -> Any:
        params_grads = adam.backward(lambda parameters: mlp(parameters, x, y), startup_program=program)
        return adam.apply_gradients(params_grads)

    def apply_optimize(program: Any, x: Any, y: Any) -> Any:
        def cost(parameters: Any) -> Any:
            return mlp(parameters, x, y)

        return adam.apply_optimize(cost, program, adam.backward(cost, startup_program=program))

    return {"minimize": minimize, "apply_gradients": apply_gradients, "apply_optimize": apply_optimize}


def draw(adam: Any, options: argparse.Namespace) -> None:
    """Write a chart of the memory before and after recomputation."""
    step = recompute.jax.jit(variants(adam)["minimize"], measure=False)
    batch = gen_data(0, options.rows, options.features)
    lowered = step.lower(adam.startup(start(options.features, options.hidden)), *batch)
    if lowered.rewritten is not None:
        ((before, after),) = lowered.rewritten.memory().values()
        options.folder.mkdir(parents=True, exist_ok=True)
        picture = options.folder / "paddle_optimizer.memory.svg"
        picture.write_text(to_svg([("as JAX lowers it", before), ("recomputed", after)], "fc_1 and pred"))
        print(f"chart: {picture}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, size in (("rows", 32), ("features", 32), ("hidden", 128)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="the folder for the chart")
    options = parser.parse_args(arguments)

    adam = recompute.jax.paddle.RecomputeOptimizer(optax.adam(0.01))
    adam._set_checkpoints(["fc_1", "pred"])
    programs = dict[str, Any]()
    for name, variant in variants(adam).items():
        step = recompute.jax.jit(variant, measure=False, donate_argnums=0)
        program = adam.startup(start(options.features, options.hidden))
        for index in range(STEPS):
            program = step(program, *gen_data(index, options.rows, options.features))
            if name == "minimize":
                print(f"step={index} cost={float(program.loss):f}")
        programs[name] = program
    draw(adam, options)
    for name, program in programs.items():
        same = jax.tree.map(lambda entry, other: bool((entry == other).all()), program, programs["minimize"])
        assert all(jax.tree.leaves(same)), f"the result of {name} differs from that of minimize"
        print(f"{name}: parameters, moments and cost are bit-identical to those of minimize")


if __name__ == "__main__":
    main()
