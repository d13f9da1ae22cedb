"""Steps written with Flax NNX: one with running statistics, one with NNX's own attention."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from recompute.benchmarks.unseen.held_back.layers import log_loss
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, shape


class Residual(nnx.Module):
    def __init__(self, features: int, rngs: nnx.Rngs) -> None:
        self.wide = nnx.Conv(features, 2 * features, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(2 * features, rngs=rngs)
        self.narrow = nnx.Conv(2 * features, features, (1, 1), rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.narrow(nnx.relu(self.norm(self.wide(x))))


def nnx_batch_stats(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a residual convolutional network, whose blocks also return running statistics."""
    run = Blocks(checkpoint, scopes)
    made = nnx.eval_shape(lambda: nnx.List([Residual(16, nnx.Rngs(i)) for i in range(5)]))
    split = [nnx.split(block, nnx.Param, nnx.BatchStat) for block in made]
    graphs, params, statistics = (list(part) for part in zip(*split, strict=True))

    def loss(params: Any, statistics: Any, image: jax.Array, target: jax.Array) -> tuple[jax.Array, Any]:
        x, seen = image, []
        for i, (graph, p, s) in enumerate(zip(graphs, params, statistics, strict=True)):

            def block(p: Any, s: Any, x: jax.Array, graph: Any = graph) -> tuple[jax.Array, Any]:
                module = nnx.merge(graph, p, s, copy=True)
                y = module(x)
                return y, nnx.state(module, nnx.BatchStat)

            x, s = run(f"Residual_{i}", block, p, s, x)
            seen.append(s)
        return jnp.mean((x - target) ** 2), seen

    def step(params: Any, velocity: Any, statistics: Any, image: jax.Array, target: jax.Array) -> Any:
        (value, seen), grads = jax.value_and_grad(loss, has_aux=True)(params, statistics, image, target)
        return value, *momentum(params, grads, velocity), seen

    batch = (shape(6, 48, 48, 16), shape(6, 48, 48, 16))
    return UnseenStep(step, (params, params, statistics, *batch), donate=(0, 1, 2))


class DecoderLayer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.before = nnx.RMSNorm(64, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 64, decode=False, rngs=rngs)
        self.after = nnx.RMSNorm(64, rngs=rngs)
        self.up = nnx.Linear(64, 192, rngs=rngs)
        self.down = nnx.Linear(192, 64, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attention(self.before(x), mask=nnx.make_causal_mask(x[..., 0]))
        return x + self.down(nnx.silu(self.up(self.after(x))))


class Decoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(160, 64, rngs=rngs)
        self.layers = nnx.List([DecoderLayer(rngs) for _ in range(5)])

    def __call__(self, tokens: jax.Array, run: Blocks) -> jax.Array:
        x = self.embed(tokens)
        call = nnx.remat(lambda layer, x: layer(x)) if run.checkpoint else lambda layer, x: layer(x)
        for i, layer in enumerate(self.layers):
            with run.scope(f"decoder_layer_{i}"):
                x = call(layer, x)
        return self.embed.attend(x)


def nnx_decoder(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a decoder with NNX's attention, checkpointed by `nnx.remat`."""
    run = Blocks(checkpoint, scopes)
    graph, params, others = nnx.split(nnx.eval_shape(lambda: Decoder(nnx.Rngs(0))), nnx.Param, ...)
    assert not jax.tree.leaves(others), "the decoder has parameters only"

    def loss(params: Any, tokens: jax.Array) -> jax.Array:
        logits = nnx.merge(graph, params, others)(tokens, run)
        return log_loss(logits[:, :-1], tokens[:, 1:])

    def step(params: Any, state: Any, tokens: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, tokens)
        return value, *adam(params, grads, state)

    return UnseenStep(step, (params, adam_state(params), integers(6, 96)), donate=(0, 1))


STEPS = {"nnx_batch_stats": nnx_batch_stats, "nnx_decoder": nnx_decoder}
