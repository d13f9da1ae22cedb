"""A U-Net of three levels. The layers on the way up read the activations of the way down."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .resnet import batch_norm, convolve
from .step import Step, maybe_checkpoint, shape

LEVELS = 3
COLOURS = 3
# batch, height and width, channels of the first level
SIZES = {"small": (2, 16, 2), "large": (8, 64, 32)}

Weights = dict[str, jax.Array]


def stage(p: Weights, x: jax.Array) -> jax.Array:
    """Apply two convolutions, each followed by batch normalization and relu."""
    for name in ("first", "second"):
        x = jax.nn.relu(batch_norm(convolve(x, p[name]), p[f"{name}_scale"], p[f"{name}_shift"]))
    return x


def down(p: Weights, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the skip connection of a level, and the input of the next level with half the height and width."""
    skip = stage(p, x)
    return skip, convolve(skip, p["resize"], stride=2)


def up(p: Weights, x: jax.Array, skip: jax.Array) -> jax.Array:
    wide = x.repeat(2, axis=1).repeat(2, axis=2)
    return stage(p, jnp.concatenate([convolve(wide, p["resize"]), skip], axis=-1))


def stage_weights(inputs: int, outputs: int) -> Weights:
    vector = shape(outputs)
    norms = {f"{name}_{kind}": vector for name in ("first", "second") for kind in ("scale", "shift")}
    return {"first": shape(3, 3, inputs, outputs), "second": shape(3, 3, outputs, outputs), **norms}


def parameters_of(channels: int) -> dict[str, list[Weights]]:
    """Return the shapes of the weights on the way down, at the bottom, and on the way up."""
    widths = [channels << level for level in range(LEVELS + 1)]
    inputs = [COLOURS, *widths[1:LEVELS]]
    return {
        "down": [
            stage_weights(a, b) | {"resize": shape(2, 2, b, c)}
            for a, b, c in zip(inputs, widths[:LEVELS], widths[1:], strict=True)
        ],
        "bottom": [stage_weights(widths[LEVELS], widths[LEVELS])],
        "up": [stage_weights(2 * a, a) | {"resize": shape(2, 2, 2 * a, a)} for a in reversed(widths[:LEVELS])],
    }


def build(size: str, checkpoint: bool = False) -> Step:
    batch, side, channels = SIZES[size]

    def loss(parameters: dict[str, list[Weights]], x: jax.Array, target: jax.Array) -> jax.Array:
        skips: list[jax.Array] = []
        for level, p in enumerate(parameters["down"]):
            with jax.named_scope(f"down{level}"):
                skip, x = maybe_checkpoint(down, checkpoint)(p, x)
                skips.append(skip)
        with jax.named_scope("bottom"):
            x = maybe_checkpoint(stage, checkpoint)(parameters["bottom"][0], x)
        for level, p in enumerate(parameters["up"]):
            with jax.named_scope(f"up{LEVELS - 1 - level}"):
                x = maybe_checkpoint(up, checkpoint)(p, x, skips.pop())
        return jnp.mean((x - target) ** 2)

    arguments = (parameters_of(channels), shape(batch, side, side, COLOURS), shape(batch, side, side, channels))
    return Step(jax.value_and_grad(loss), arguments)
