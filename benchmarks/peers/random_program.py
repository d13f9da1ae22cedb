"""Small training steps of random structure, each determined by a seed."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from recompute.benchmarks.peers.peer import Built, cross_entropy, matrix
from recompute.benchmarks.peers.random_layers import IMAGES, LAYERS, SEQUENCES, RandomLayer

KINDS = {"rows": LAYERS, "sequence": {**LAYERS, **SEQUENCES}, "images": {**LAYERS, **IMAGES}}
SHAPES = {"rows": (2048,), "sequence": (16, 128), "images": (8, 16, 16)}
CLASSES = 16


@dataclass(frozen=True)
class Node:
    """A layer of a program, and the indices of its input values.

    Index 0 is the program's input, and index n is the result of node n - 1.
    """

    kind: str
    reads: tuple[int, ...]


@dataclass(frozen=True)
class RandomProgram:
    """A random training step.

    Attributes:
        named: The number of nodes in each named block; 0 if blocks have no names.
        second: The index of the value from which a second loss is computed, or None.
        aux: The index of the value from which an auxiliary output is computed, or None.
    """

    seed: int
    domain: str
    width: int
    few_rows: bool
    embedded: bool
    nodes: tuple[Node, ...]
    named: int
    loss: str
    second: int | None
    aux: int | None
    optimizer: str
    donated: bool

    @property
    def rounds_to_bf16(self) -> bool:
        """Whether some layer computes in bf16."""
        return any(node.kind == "bf16" for node in self.nodes)

    def __str__(self) -> str:
        nodes = " ".join(f"{node.kind}({','.join(map(str, node.reads))})" for node in self.nodes)
        extras = [
            f"{self.domain}×{self.width}",
            *(["few rows"] if self.few_rows else []),
            *(["embedded"] if self.embedded else []),
            self.loss,
            *([f"second loss of {self.second}"] if self.second is not None else []),
            *([f"aux {self.aux}"] if self.aux is not None else []),
            self.optimizer,
            *(["donated"] if self.donated else []),
            *([f"names of {self.named}"] if self.named else []),
        ]
        return f"{', '.join(extras)}: {nodes}"


def program(seed: int) -> RandomProgram:
    """Draw the program that a seed determines."""
    draw = np.random.default_rng(seed)
    domain = str(draw.choice(list(KINDS)))
    count = int(draw.integers(5, 15))
    nodes = tuple(_node(draw, domain, index) for index in range(count))
    return RandomProgram(
        seed=seed,
        domain=domain,
        width=int(draw.choice([16, 32, 48])),
        few_rows=bool(draw.random() < 0.1),
        embedded=domain == "sequence" and bool(draw.random() < 0.5),
        nodes=nodes,
        named=int(draw.choice([0, 0, 1, 2, 3])),
        loss=str(draw.choice(["mean square", "softmax"])),
        second=_maybe(draw, count),
        aux=_maybe(draw, count),
        optimizer=str(draw.choice(["none", "sgd", "adam"])),
        donated=bool(draw.random() < 0.5),
    )


def _node(draw: np.random.Generator, domain: str, index: int) -> Node:
    """Draw a node. Its first input is usually the newest value, which gives the program depth."""
    kinds = KINDS[domain]
    kind = str(draw.choice(list(kinds)))
    first = index if draw.random() < 0.8 else int(draw.integers(index + 1))
    return Node(kind, (first, *(int(draw.integers(index + 1)) for _ in range(kinds[kind].reads - 1))))


def _maybe(draw: np.random.Generator, count: int) -> int | None:
    result, requested = int(draw.integers(1, count + 1)), draw.random() < 0.3
    return result if requested else None


def build_step(spec: RandomProgram) -> Built:
    """Build the training step of a program."""
    layers = [KINDS[spec.domain][node.kind] for node in spec.nodes]
    shape = (SHAPES[spec.domain][0] // (8 if spec.few_rows else 1), *SHAPES[spec.domain][1:])
    optimizer = {"none": None, "sgd": optax.sgd(0.01), "adam": optax.adam(1e-3)}[spec.optimizer]

    def arguments(seed: int) -> tuple[Any, ...]:
        weights = weights_of(spec, layers, np.random.default_rng(seed))
        draw = np.random.default_rng(seed + 1)
        x = draw.integers(0, CLASSES, shape) if spec.embedded else draw.normal(0, 1, (*shape, spec.width))
        x_array = jnp.asarray(x, jnp.int32 if spec.embedded else jnp.float32)
        labels = jnp.asarray(draw.integers(0, CLASSES, shape), jnp.int32)
        state = (weights, optimizer.init(weights)) if optimizer else weights
        return state, x_array, labels, jax.random.key(seed)

    return Built(step_of(spec, layers, optimizer), arguments, {"donate_argnums": 0} if spec.donated else {})


def weights_of(spec: RandomProgram, layers: list[RandomLayer], draw: np.random.Generator) -> Any:
    """Draw the weights of a program."""
    table, out = matrix(draw, CLASSES, spec.width) * 4, matrix(draw, spec.width, CLASSES)
    return {"table": table, "out": out, "layers": [layer.weights(draw, spec.width) for layer in layers]}


def step_of(spec: RandomProgram, layers: list[RandomLayer], optimizer: Any) -> Any:
    """Return the step function.

    It returns the loss and the auxiliary output, with the gradient, or with the new state if the program has an
    optimizer.
    """

    def loss(weights: Any, x: jax.Array, labels: jax.Array, key: jax.Array) -> Any:
        values = run(spec, layers, weights, x, key)
        total = objective(spec, weights, values[-1], labels)
        if spec.second is not None:
            total += 0.1 * jnp.mean(jnp.abs(values[spec.second]))
        return total, {} if spec.aux is None else {"mean": values[spec.aux].mean(0), "most": values[spec.aux].max()}

    def step(state: Any, *batch: jax.Array) -> Any:
        weights, moments = state if optimizer else (state, None)
        (value, aux), gradient = jax.value_and_grad(loss, has_aux=True)(weights, *batch)
        if optimizer is None:
            return value, aux, gradient
        updates, moments = optimizer.update(gradient, moments, weights)
        return (optax.apply_updates(weights, updates), moments), value, aux

    return step


def objective(spec: RandomProgram, weights: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
    """Compute the loss from the last value."""
    scores = x @ weights["out"]
    if spec.loss == "softmax":
        return cross_entropy(scores, labels)
    return jnp.mean((scores - jax.nn.one_hot(labels, CLASSES)) ** 2)


def run(spec: RandomProgram, layers: list[RandomLayer], weights: Any, x: jax.Array, key: jax.Array) -> list[jax.Array]:
    """Run the layers, and return the program's input and the value of each node."""
    values = [weights["table"][x] if spec.embedded else x]
    for index, (node, layer, w) in enumerate(zip(spec.nodes, layers, weights["layers"], strict=True)):
        scope = jax.named_scope(f"layer{index // spec.named}") if spec.named else nullcontext()
        with scope:
            read = tuple(values[source] for source in node.reads)
            values.append(layer.run(w, read, jax.random.fold_in(key, index)))
    return values
