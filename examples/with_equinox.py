"""Train an Equinox network. `recompute.jax.named` adds named scopes to its modules.

    python examples/with_equinox.py

The script needs `pip install 'xdsl-recompute[jax,equinox]'`. Modules of Flax NNX are named in the same way.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import recompute

WIDTH, LAYERS = 64, 6


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, key: Any):
        first, second = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.up, self.down = eqx.nn.Linear(WIDTH, 4 * WIDTH, key=first), eqx.nn.Linear(4 * WIDTH, WIDTH, key=second)

    def __call__(self, x: Any) -> Any:
        return x + jax.vmap(self.down)(jax.nn.gelu(jax.vmap(self.up)(jax.vmap(self.norm)(x))))


class Network(eqx.Module):
    blocks: list[Block]

    def __init__(self, key: Any):
        self.blocks = [Block(entry) for entry in jax.random.split(key, LAYERS)]

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


OPTIMIZER = optax.adam(1e-3)


def train_step(network: Network, state: Any, x: Any, y: Any) -> tuple[Network, Any, Any]:
    def loss(network: Network) -> Any:
        return jnp.mean((recompute.jax.named(network)(x) - y) ** 2)  # was: network(x)

    value, gradient = jax.value_and_grad(loss)(network)
    updates, state = OPTIMIZER.update(gradient, state)
    return eqx.apply_updates(network, updates), state, value


def start() -> tuple[Network, Any, Any, Any]:
    network = Network(jax.random.key(0))
    x, y = jax.random.normal(jax.random.key(1), (2, 1024, WIDTH))
    return network, OPTIMIZER.init(network), x, y


def main() -> None:
    network, state, x, y = start()
    step = recompute.jax.jit(train_step, segments="blocks*", donate_argnums=(0, 1))
    print(step.report(network, state, x, y))
    for number in range(3):
        network, state, value = step(network, state, x, y)
        print(f"step {number}: loss {float(value):.4f}")
    assert jnp.isfinite(value)


if __name__ == "__main__":
    main()
