"""The examples in MindSpore's two documents on recomputation, run on JAX: `recompute(block, x)` and `cell.recompute()`.

    python examples/mindspore_calls.py [--blocks 10]

The script needs `pip install 'xdsl-recompute[jax,plot]'`. The first example prints the gradient that MindSpore's page
shows, [[2, 4], [4, 8]] in each channel. The second example is the tutorial's network of ten self-attention blocks:
plain, with `cell.recompute()`, and with `jax.checkpoint` around the same blocks. The script also draws a chart of the
memory.
"""

# pyright: basic

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import recompute
from recompute.reports.memory_timeline import to_svg

ms = recompute.jax.mindspore
KEEPS_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
BATCH, LENGTH, HEADS, WIDTH = 8, 128, 16, 32  # The sizes of the tutorial.
RATE, DIVISOR = 0.9, 2.37891


def convolution(x: Any) -> Any:
    """Compute `nn.Conv2d(2, 2, 2, has_bias=False, weight_init="ones")`, whose output has the shape of the input."""
    return jax.lax.conv(x, jnp.ones((2, 2, 2, 2), x.dtype), (1, 1), "SAME")


def first_example() -> np.ndarray:
    """Return the gradient of relu(conv(x)) with the convolution recomputed.

    The block is a single operation whose result is saved, so no memory is freed. A warning says so, as in MindSpore.
    """

    def net(x: Any) -> Any:
        y = ms.recompute(convolution, x)
        return jnp.sum(jax.nn.relu(y))

    return np.asarray(recompute.jax.jit(jax.grad(net))(jnp.full((2, 2, 2, 2), 2.0)))


def block(weight: Any, x: Any, key: Any) -> Any:
    queries = x.transpose(0, 2, 1, 3) / DIVISOR
    keys = x.transpose(0, 2, 3, 1) / DIVISOR
    scores = (1.0 - weight[:, None]) * -0.0001 + queries @ keys
    attention = jax.nn.softmax(scores, axis=-1)
    # The tutorial's `ops.Dropout(0.9)` keeps nine of ten values.
    kept = jnp.where(jax.random.bernoulli(key, RATE, attention.shape), attention / RATE, 0)
    return (kept @ x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)


def gradient_of_net(cell: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes the network's gradient with respect to its input (the tutorial's `Grad`)."""

    def net(x: Any, weights: list[Any], key: Any) -> Any:
        for index, weight in enumerate(weights):
            x = cell(weight, x, jax.random.fold_in(key, index))
        return jnp.sum(x)

    return jax.grad(net)


def temporaries(compiled: jax.stages.Compiled) -> int:
    """Return the bytes of temporaries of a compiled step."""
    return compiled.memory_analysis().temp_size_in_bytes  # type: ignore[union-attr]


def tutorial(blocks: int, folder: Path, heads: int = HEADS) -> dict[str, int]:
    """Measure the tutorial's network, and write a chart of its memory to `folder`.

    Returns:
        The bytes of temporaries by name: plain, with `cell.recompute()`, and with `jax.checkpoint`.
    """
    x = jnp.asarray(np.random.default_rng(0).normal(size=(BATCH, LENGTH, heads, WIDTH)), jnp.float32)
    arguments = x, [jnp.ones((BATCH, LENGTH, LENGTH))] * blocks, jax.random.key(0)
    plain = jax.jit(gradient_of_net(block)).lower(*arguments).compile()
    theirs = jax.jit(gradient_of_net(jax.checkpoint(block))).lower(*arguments).compile(KEEPS_BARRIERS)

    cell = ms.Cell(block)
    cell.recompute()
    lowered = recompute.jax.jit(gradient_of_net(cell)).lower(*arguments)
    ours = lowered.compile()

    assert np.array_equal(ours(*arguments), plain(*arguments)), "recomputation must not change the results"
    ((before, after),) = lowered.rewritten.memory().values()
    folder.mkdir(parents=True, exist_ok=True)
    picture = to_svg([("as JAX lowers it", before), ("recomputed", after)], "The network of the tutorial")
    (folder / "tutorial.memory.svg").write_text(picture)
    return {"plain": temporaries(plain), "recompute": temporaries(ours), "jax.checkpoint": temporaries(theirs)}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=10, help="the number of blocks (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="the folder for the chart")
    provided = parser.parse_args(arguments)
    print(first_example()[0, 0])
    for name, size in tutorial(provided.blocks, provided.folder).items():
        print(f"{name:15} {size / 2**20:7.1f} MiB of temporaries")
    print(f"chart           {provided.folder / 'tutorial.memory.svg'}")


if __name__ == "__main__":
    main()
