"""The GPT of `gpt.py` in mixed precision, with weights and loss in f32, and blocks in bf16."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from . import gpt
from .gpt import Config, Parameters
from .step import Step, maybe_checkpoint, shape

LAYERS = {"small": 3, "large": gpt.LAYERS}


def narrow(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), tree)


def forward(p: Parameters, tokens: jax.Array, targets: jax.Array, key: jax.Array, config: Config, checkpoint: bool):
    x = narrow(p["embedding"][tokens] + p["position"])
    for index, layer in enumerate(p["layers"]):
        with jax.named_scope(f"block{index}"):
            run = maybe_checkpoint(lambda q, y, k: gpt.block(narrow(q), y, k, config.heads), checkpoint)
            x = run(layer, x, jax.random.fold_in(key, index))
    logits = gpt.layer_norm(x.astype(jnp.float32), p["norm"]) @ p["embedding"].T
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -jnp.mean(chosen)


def build(size: str, checkpoint: bool = False) -> Step:
    config = gpt.SIZES[size]
    parameters = gpt.parameters_of(config)
    parameters["layers"] = parameters["layers"][: LAYERS[size]]

    def gradients(p: Parameters, tokens: jax.Array, targets: jax.Array, key: jax.Array):
        return jax.value_and_grad(forward)(p, tokens, targets, key, config, checkpoint)

    tokens = shape(config.batch, config.length, dtype=jnp.int32)
    return Step(gradients, (parameters, tokens, tokens, shape(2, dtype=jnp.uint32)))
