"""Steps on a mesh of 4 × 2 devices: partitioned by XLA, written with `shard_map`, and with shardings in the types."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from recompute.benchmarks.peers import plain_gpt
from recompute.benchmarks.peers.peer import SMALL, Built, Remat, checkpointed, descent, matrix, texts

DEVICES = 8
SPLIT = {"qkv": (None, "model"), "out": ("model", None), "up": (None, "model"), "down": ("model", None)}
"""The mesh axis along which each dimension of a block's weights is split, as in Megatron."""


def mesh_of(kind: AxisType) -> Mesh:
    """Return the mesh, with both axes of the given kind."""
    return jax.make_mesh((4, 2), ("data", "model"), axis_types=(kind, kind))


def place_on_mesh(mesh: Mesh, weights: Any, batch: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put the weights on the mesh according to `SPLIT`, and split the batch over the axis `data`."""

    def spec(path: Any, _: Any) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*SPLIT.get(getattr(path[-1], "key", ""), ())))

    over = NamedSharding(mesh, PartitionSpec("data"))
    return jax.device_put(weights, jax.tree.map_with_path(spec, weights)), *jax.device_put(batch, over)


def build_automatic(remat: Remat, size: str) -> Built:
    """Build a GPT step that XLA partitions according to the shardings of its arguments."""
    mesh, shape = mesh_of(AxisType.Auto), plain_gpt.size_of(size)

    def arguments(seed: int) -> tuple[Any, ...]:
        return place_on_mesh(
            mesh, plain_gpt.weights_of(seed, shape), texts(seed, shape.rows, shape.length, shape.words)
        )

    return Built(descent(plain_gpt.loss_of(shape, remat, named=True)), arguments, {"donate_argnums": 0})


def build_mapped(remat: Remat, size: str) -> Built:
    """Build a GPT step in which each device computes the gradients of its rows, which are then averaged."""
    mesh, shape = mesh_of(AxisType.Auto), plain_gpt.size_of(size)
    everywhere, rows = PartitionSpec(), PartitionSpec(("data", "model"))

    @partial(jax.shard_map, mesh=mesh, in_specs=(everywhere, rows, rows), out_specs=everywhere, check_vma=False)
    def step(weights: Any, tokens: jax.Array, following: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(plain_gpt.loss_of(shape, remat, named=True))(weights, tokens, following)
        value, gradient = jax.lax.pmean((value, gradient), ("data", "model"))
        return value, jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradient)

    def arguments(seed: int) -> tuple[Any, ...]:
        weights = jax.device_put(plain_gpt.weights_of(seed, shape), NamedSharding(mesh, everywhere))
        batch = texts(seed, shape.rows, shape.length, shape.words)
        return weights, *jax.device_put(batch, NamedSharding(mesh, rows))

    return Built(step, arguments)


def explicit_block(w: Any, x: jax.Array) -> jax.Array:
    """Apply a residual MLP block with shardings in the types to x of shape (rows, length, width)."""
    hidden = jax.nn.gelu(plain_gpt.normalized(x, w["norm"]) @ w["up"])
    # The contraction sums over shards, so JAX requires the sharding of its result.
    return x + jnp.einsum("btf,fd->btd", hidden, w["down"], out_sharding=PartitionSpec("data"))


def build_explicit(remat: Remat, size: str) -> Built:
    """Build a step with residual MLP blocks over tokens, with shardings in the types."""
    rows, length, width, layers = (8, 8, 16, 3) if size == SMALL else (32, 128, 128, 6)
    mesh = mesh_of(AxisType.Explicit)
    run = checkpointed(explicit_block, remat)

    def loss(weights: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        for number, w in enumerate(weights):
            with jax.named_scope(f"block{number}"):
                x = run(w, x)
        return jnp.mean((x - y) ** 2)

    def arguments(seed: int) -> tuple[Any, ...]:
        draw = np.random.default_rng(seed)
        weights = [
            {"norm": jnp.ones(width), "up": matrix(draw, width, 4 * width), "down": matrix(draw, 4 * width, width)}
            for _ in range(layers)
        ]
        x, y = jnp.asarray(draw.normal(0, 1, (2, rows, length, width)), jnp.float32)
        return place_on_mesh(mesh, weights, (x, y))

    return Built(descent(loss), arguments, {}, lambda: jax.set_mesh(mesh))
