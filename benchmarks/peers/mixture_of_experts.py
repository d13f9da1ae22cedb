"""A mixture of experts in plain JAX: each token goes to one expert with a capacity, and the loss balances the load."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recompute.benchmarks.peers.peer import SMALL, Built, Remat, checkpointed, cross_entropy, descent, matrix, texts
from recompute.benchmarks.peers.plain_gpt import normalized

EXPERTS = 4


def block(w: dict[str, Any], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Apply a block of experts to x of shape (tokens, width), and return the result and the load imbalance."""
    features = normalized(x, w["norm"])
    odds = jax.nn.softmax(features @ w["gate"])
    chosen = jax.nn.one_hot(jnp.argmax(odds, -1), EXPERTS)
    slot = jnp.cumsum(chosen, 0) * chosen - 1
    capacity = 2 * len(x) // EXPERTS
    routed = jax.nn.one_hot(slot.astype(jnp.int32), capacity) * (odds * chosen)[..., None]
    inputs = jnp.einsum("tec,td->ecd", (routed > 0).astype(x.dtype), features)
    hidden = jax.nn.silu(jnp.einsum("ecd,edh->ech", inputs, w["up"]))
    outputs = jnp.einsum("ech,ehd->ecd", hidden, w["down"])
    uneven = EXPERTS * jnp.sum(odds.mean(0) * chosen.mean(0))
    return x + jnp.einsum("tec,ecd->td", routed, outputs), uneven


def loss_of(remat: Remat) -> Any:
    """Return the loss function, which adds the load imbalance of all blocks to the cross entropy."""
    run = checkpointed(block, remat)

    def loss(weights: Any, tokens: jax.Array, following: jax.Array) -> jax.Array:
        x, uneven = weights["tokens"][tokens.ravel()], 0.0
        for number, w in enumerate(weights["blocks"]):
            with jax.named_scope(f"expert_block{number}"):
                x, entry = run(w, x)
            uneven += entry
        return cross_entropy(x @ weights["tokens"].T, following.ravel()) + 0.01 * uneven

    return loss


def weights_of(seed: int, width: int, layers: int, words: int) -> Any:
    """Draw the model's weights."""
    draw = np.random.default_rng(seed)

    def block_weights() -> dict[str, Any]:
        up = jnp.stack([matrix(draw, width, 4 * width) for _ in range(EXPERTS)])
        down = jnp.stack([matrix(draw, 4 * width, width) for _ in range(EXPERTS)])
        return {"norm": jnp.ones(width), "gate": matrix(draw, width, EXPERTS), "up": up, "down": down}

    return {"tokens": matrix(draw, words, width), "blocks": [block_weights() for _ in range(layers)]}


def build(remat: Remat, size: str) -> Built:
    """Build the training step of the given size, plain or with remat."""
    rows, length, width, layers, words = (2, 32, 16, 3, 64) if size == SMALL else (8, 128, 64, 5, 256)
    step = descent(loss_of(remat))
    return Built(step, lambda seed: (weights_of(seed, width, layers, words), *texts(seed, rows, length, words)))
