"""A step whose `jax.checkpoint` is merged back needs as little memory as the step without it."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import recompute
from recompute.mlir_io.parser import parse_module
from recompute.test.unit.frontends.jax.steps import jax, jnp
from recompute.transforms.merge_remat import without_remat

BLOCKS, TOKENS, WIDTH = 4, 64, 32
WEIGHTS = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "up": (WIDTH, 128), "down": (128, WIDTH)}


def attention(w: Any, x: Any) -> Any:
    scores = (x @ w["q"]) @ (x @ w["k"]).T / jnp.sqrt(jnp.float32(WIDTH))
    causal = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    x = x + jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1) @ (x @ w["v"])
    return x + jnp.tanh(x @ w["up"]) @ w["down"]


def peak_bytes(wrap: Callable[[Any], Any], model: str) -> int:
    """Return the peak of the rewritten step under a memory model, with the copies of `jax.checkpoint` merged."""
    block = wrap(attention)

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            with jax.named_scope(f"block{index}"):
                x = block(w, x)
        return jnp.mean(x**2)

    weights = [{name: jnp.ones(shape) for name, shape in WEIGHTS.items()} for _ in range(BLOCKS)]
    text = jax.jit(jax.grad(loss)).lower(weights, jnp.ones((TOKENS, WIDTH))).as_text(debug_info=True)
    rewritten = recompute.rewrite(without_remat(parse_module(text)))
    assert rewritten.copies > 0 and rewritten.proof is not None and rewritten.proof.proved
    (timeline,) = recompute.memory(rewritten.module, model).values()
    return timeline.peak_bytes


def test_masks_shared_by_merged_blocks_do_not_start_copies_early() -> None:
    """The masks of all blocks are equal constant expressions, which merging makes one value of the first block."""
    for model in ("order", "xla"):
        assert peak_bytes(jax.checkpoint, model) <= 1.02 * peak_bytes(lambda block: block, model)
