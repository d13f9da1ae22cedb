"""Gradients of a `shard_map` on eight devices; `test_shard_map.py` runs this in a process of its own.

Each is compared with `jax.checkpoint` around the block: no more memory, no more collectives, and proved.
"""

# pyright: basic

from __future__ import annotations

import re
import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import recompute

LAYERS, ROWS, LENGTH, WIDTH, HEADS = 4, 16, 32, 64, 4
Spec = PartitionSpec
MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
on_devices = partial(jax.shard_map, mesh=MESH)
KEEPS: dict[str, str | bool] = {"xla_disable_hlo_passes": "cse_barrier_expander"}


def normal(seed: int, *shape: int) -> Any:
    return jax.random.normal(jax.random.key(seed), shape) * 0.05


def layer(seed: int) -> dict[str, Any]:
    shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH)}
    shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    return {name: normal(10 * seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


SPECS = {name: Spec("model", None) if name in ("o", "down") else Spec(None, "model") for name in layer(0)}
STACKED = {name: Spec(None, *spec) for name, spec in SPECS.items()}
WEIGHTS = [layer(seed) for seed in range(LAYERS)]
X = normal(99, ROWS, LENGTH, WIDTH)


def normed(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def block(x: Any, w: Any) -> Any:
    """Tensor-parallel block in which each device has half of the heads and half of the hidden values."""
    h = normed(x)
    q, k, v = ((h @ w[name]).reshape(*x.shape[:2], HEADS // 2, -1) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bthd,bshd->bhts", q, k) / 4, -1)
    read = jnp.einsum("bhts,bshd->bthd", scores, v).reshape(*x.shape[:2], -1)
    x = x + jax.lax.psum(read @ w["o"], "model")
    return x + jax.lax.psum(jax.nn.gelu(normed(x) @ w["up"]) @ w["down"], "model")


def inside(around: Any) -> Any:
    """Loss outside one shard_map around all layers."""

    def net(weights: Any, x: Any) -> Any:
        for i, w in enumerate(weights):
            with jax.named_scope(f"block{i}"):
                x = around(block)(x, w)
        return x

    def loss(weights: Any, x: Any) -> Any:
        y = on_devices(net, in_specs=([SPECS] * LAYERS, Spec("data")), out_specs=Spec("data"))(weights, x)
        return jnp.mean(jnp.tanh(y) ** 2)

    return loss, (WEIGHTS, X)


def loss_inside(around: Any) -> Any:
    """Loss inside the shard_map, so that all incoming cotangents are constants."""

    def net(weights: Any, x: Any) -> Any:
        for i, w in enumerate(weights):
            with jax.named_scope(f"block{i}"):
                x = around(block)(x, w)
        return jax.lax.pmean(jnp.mean(jnp.tanh(x) ** 2), "data")

    return on_devices(net, in_specs=([SPECS] * LAYERS, Spec("data")), out_specs=Spec()), (WEIGHTS, X)


def shard_map_per_layer(around: Any) -> Any:
    """One shard_map for each layer, with other operations in between."""

    def loss(weights: Any, x: Any) -> Any:
        item = around(on_devices(block, in_specs=(Spec("data"), SPECS), out_specs=Spec("data")))
        for i, w in enumerate(weights):
            with jax.named_scope(f"block{i}"):
                x = jnp.sin(item(x, w))
        return jnp.mean(jnp.tanh(x) ** 2)

    return loss, (WEIGHTS, X)


def stacked() -> Any:
    return jax.tree.map(lambda *each: jnp.stack(each), *WEIGHTS)


def scan_inside(around: Any) -> Any:
    def net(weights: Any, x: Any) -> Any:
        return jax.lax.scan(lambda x, w: (around(block)(x, w), None), x, weights)[0]

    def loss(weights: Any, x: Any) -> Any:
        y = on_devices(net, in_specs=(STACKED, Spec("data")), out_specs=Spec("data"))(weights, x)
        return jnp.mean(jnp.tanh(y) ** 2)

    return loss, (stacked(), X)


def inside_a_scan(around: Any) -> Any:
    def loss(weights: Any, x: Any) -> Any:
        item = around(on_devices(block, in_specs=(Spec("data"), SPECS), out_specs=Spec("data")))
        y = jax.lax.scan(lambda x, w: (item(x, w), None), x, weights)[0]
        return jnp.mean(jnp.tanh(y) ** 2)

    return loss, (stacked(), X)


STEPS = {
    "inside": (inside, False),
    "loss inside": (loss_inside, False),
    "one each": (shard_map_per_layer, True),
    "scan inside": (scan_inside, True),
    "inside a scan": (inside_a_scan, True),
}
"""With whether collectives may be repeated, as `jax.checkpoint` does."""


def figures(compiled: Any) -> tuple[int, int]:
    """Return the bytes of temporaries and the number of collectives."""
    text = compiled.as_text()
    matches = re.findall(r"= \S+ (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)\(", text)
    return compiled.memory_analysis().temp_size_in_bytes, len(matches)


def check(name: str) -> None:
    make, collectives = STEPS[name]
    compiled = dict[str, Any]()
    for which, around in (("plain", lambda f: f), ("checkpoint", jax.checkpoint)):
        loss, arguments = make(around)
        compiled[which] = jax.jit(jax.value_and_grad(loss)).lower(*arguments).compile(compiler_options=KEEPS)
    loss, arguments = make(lambda f: f)
    ours = recompute.jax.jit(jax.value_and_grad(loss), collectives=collectives, measure=False).lower(*arguments)
    assert ours.why is None, (name, ours.why)
    compiled["ours"] = ours.compile(compiler_options=KEEPS)
    bytes_of = {which: figures(first)[0] for which, first in compiled.items()}
    exchanges = {which: figures(first)[1] for which, first in compiled.items()}
    assert bytes_of["ours"] <= 1.03 * bytes_of["checkpoint"], (name, bytes_of)
    assert exchanges["ours"] <= exchanges["checkpoint"], (name, exchanges)
    results = {which: jax.tree.leaves(first(*arguments)) for which, first in compiled.items()}
    for plain, theirs, result in zip(*results.values(), strict=True):
        # XLA:CPU rounds a fused computation differently: theirs is no nearer to the plain step.
        far = float(jnp.max(jnp.abs(plain - theirs)))
        assert float(jnp.max(jnp.abs(plain - result))) <= max(2 * far, 1e-6 * float(jnp.max(jnp.abs(plain)))), name
    print(name, round(bytes_of["ours"] / bytes_of["checkpoint"], 3))


def check_reason_for_unchanged_step() -> None:
    loss, arguments = inside_a_scan(lambda item: item)
    lowered = recompute.jax.jit(jax.value_and_grad(loss), measure=False).lower(*arguments)
    assert lowered.why is not None and "and collectives are recomputed only with collectives=true" in lowered.why, (
        lowered.why
    )
    assert lowered.why.endswith("allow them with recompute.jax.jit(step, collectives=True)"), lowered.why
    lowered = recompute.jax.jit(jax.value_and_grad(in_a_branch), measure=False, collectives=True).lower(WEIGHTS[0], X)
    assert lowered.why is not None and "so it is never recomputed" in lowered.why, lowered.why
    assert lowered.why.endswith("or give the loop a constant length"), lowered.why
    # Not at our own lines, at which JAX lowers.
    assert not any("frontends/jax" in str(remark) for remark in lowered.remarks), lowered.remarks


def in_a_branch(weights: Any, x: Any) -> Any:
    def net(x: Any, w: Any) -> Any:
        return jax.lax.cond(x.sum() > 0, lambda: block(x, w), lambda: jnp.sin(block(x, w)))

    return (
        on_devices(net, in_specs=(Spec("data"), SPECS), out_specs=Spec("data"), check_vma=False)(x, weights) ** 2
    ).mean()


if __name__ == "__main__":
    if "inside a scan" in sys.argv[1:]:
        check_reason_for_unchanged_step()
    for case in sys.argv[1:] or STEPS:
        check(case)
