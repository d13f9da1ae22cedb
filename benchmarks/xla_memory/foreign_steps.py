"""Twelve training steps in forms that other tools write, for `without_locations.py`.

In a foreign form, the loss is computed last or not returned, the results are one tuple, or batch normalization is one
operation. JAX writes none of these forms.
"""

# pyright: basic
# ruff: noqa: E731

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

EPSILON, FEATURE = 1e-5, 3
CLASSES = 8
draw = np.random.default_rng(0)


def normal(*shape: int) -> jax.Array:
    """Draw an array from a normal distribution with standard deviation 0.2."""
    return jnp.asarray(draw.normal(0, 0.2, shape), jnp.float32)


def _batch_norm_primitive(name: str, results: Callable[..., Any], operation: Any) -> Primitive:
    primitive = Primitive(name)
    primitive.multiple_results = True
    primitive.def_abstract_eval(results)
    mlir.register_lowering(primitive, lambda context, *operands: operation(*operands, EPSILON, FEATURE).results)
    return primitive


TRAINING = _batch_norm_primitive("batch_norm_training", lambda x, a, b: (x, a, b), hlo.BatchNormTrainingOp)
GRADIENT = _batch_norm_primitive("batch_norm_gradient", lambda x, a, m, v, g: (x, a, a), hlo.BatchNormGradOp)


@jax.custom_vjp
def batch_norm(x: Any, scale: Any, offset: Any) -> Any:
    """Normalize over batch and space with `stablehlo.batch_norm_training`, which JAX itself never emits."""
    return TRAINING.bind(x, scale, offset)[0]


def _batch_norm_forward(x, scale, offset):
    y, mean, variance = TRAINING.bind(x, scale, offset)
    return y, (x, scale, mean, variance)


batch_norm.defvjp(_batch_norm_forward, lambda saved, gradient: tuple(GRADIENT.bind(*saved, gradient)))


def convolution(x, w, stride=1, groups=1):
    """Convolve x of shape (batch, height, width, channels) without changing its height and width at stride 1."""
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def layer_norm(x):
    """Normalize the last axis."""
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + EPSILON)


def max_pool(x):
    """Halve height and width by max pooling."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def residual(x, p):
    """Apply a residual block with batch normalization."""
    y = jax.nn.relu(batch_norm(convolution(x, p["a"]), p["s"], p["t"]))
    return jax.nn.relu(x + batch_norm(convolution(y, p["b"]), p["s"], p["t"]))


def inverted(x, p):
    """Apply an inverted residual block with a depthwise convolution (MobileNet)."""
    y = jnp.clip(batch_norm(convolution(x, p["up"]), p["s"], p["t"]), 0, 6)
    y = jnp.clip(batch_norm(convolution(y, p["depth"], groups=y.shape[-1]), p["s"], p["t"]), 0, 6)
    return x + convolution(y, p["down"])


def squeezed(x, p):
    """Apply an inverted residual block with gated channels (squeeze and excitation)."""
    y = jax.nn.silu(convolution(x, p["up"]))
    y = jax.nn.silu(convolution(y, p["depth"], groups=y.shape[-1]))
    gate = jax.nn.sigmoid(jax.nn.silu(y.mean((1, 2)) @ p["squeeze"]) @ p["excite"])
    return x + convolution(y * gate[:, None, None], p["down"])


def convnext(x, p):
    """Apply a ConvNeXt block."""
    y = layer_norm(convolution(x, p["depth"], groups=x.shape[-1]))
    return x + jax.nn.gelu(y @ p["up"]) @ p["down"]


def attention(x, p):
    """Apply a Transformer block to x of shape (batch, length, width)."""
    batch, length, width = x.shape
    heads = lambda x: x.reshape(batch, length, 4, width // 4).transpose(0, 2, 1, 3)
    query, key, value = map(heads, jnp.split(layer_norm(x) @ p["qkv"], 3, -1))
    mixed = jax.nn.softmax(query @ key.swapaxes(-1, -2) / (width / 4) ** 0.5) @ value
    x = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(layer_norm(x) @ p["up"]) @ p["down"]


def dense(x, p):
    """Apply a dense layer with ReLU."""
    return jax.nn.relu(x @ p["w"] + p["b"])


def pooled(x, p):
    """Apply a convolution with ReLU, and pool the result if the image is larger than 4 pixels."""
    return max_pool(jax.nn.relu(convolution(x, p["a"]))) if x.shape[1] > 4 else jax.nn.relu(convolution(x, p["a"]))


def draw_weights(count: int, **shapes: tuple[int, ...]) -> list[dict[str, jax.Array]]:
    """Draw the weights of `count` blocks. Weights named `s` are scales, and equal to one."""
    entry = lambda name, shape: jnp.ones(shape) if name == "s" else normal(*shape)
    return [{name: entry(name, shape) for name, shape in shapes.items()} for _ in range(count)]


def cross_entropy(logits, labels):
    """Return the mean cross entropy of logits and integer labels."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1))


def sgd(p, g, state):
    """Return the parameters after one step of gradient descent, and the unchanged state."""
    return jax.tree.map(lambda p, g: p - 0.1 * g, p, g), state


def momentum(p, g, state):
    """Return the parameters and the velocity after one step with momentum."""
    state = jax.tree.map(lambda v, g: 0.9 * v + g, state, g)
    return jax.tree.map(lambda p, v: p - 0.1 * v, p, state), state


def adam(p, g, state):
    """Return the parameters and both moments after one step of Adam, without bias correction."""
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], g)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state[1], g)
    return jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-8), p, first, second), (first, second)


def lamb(p, g, state):
    """Return the parameters and both moments after one step of LAMB."""
    moved, state = adam(p, g, state)
    norm = lambda x: jnp.sqrt(jnp.sum(x * x)) + 1e-6
    return jax.tree.map(lambda p, q: p + norm(p) / norm(p - q) * 0.01 * (q - p), p, moved), state


def loss_last(function: Any) -> None:
    """Move the operations that only the loss (result 0) needs to the end of the function."""
    operations = list(function.entry_block.operations)
    end = operations[-1]
    late = {end}
    for operation in reversed(operations[:-1]):
        readers = [use for result in operation.results for use in result.uses]
        only_loss = readers and all(
            use.owner in late and (use.owner != end or use.operand_number == 0) for use in readers
        )
        if only_loss and operation.name != "stablehlo.constant":
            late.add(operation)
    for operation in operations[:-1]:
        if operation in late:
            operation.move_before(end)


def as_tuple(function: Any) -> None:
    """Rewrite the function so that it returns all results as one tuple."""
    end = list(function.entry_block.operations)[-1]
    with ir.InsertionPoint(end), ir.Location.unknown():
        whole = hlo.TupleOp(list(end.operands))
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([argument.type for argument in function.arguments], [whole.result.type])
        )
        ir.Operation.create("func.return", operands=[whole.result])
    del function.attributes["res_attrs"]
    end.erase()


def unchanged(function: Any) -> None:
    """Leave the function unchanged, for a step whose program differs only by its missing locations."""


IMAGES = normal(16, 16, 16, 8)
TOKENS = normal(16, 32, 32)
BATCH_NORM = {"s": (8,), "t": (8,)}
WIDE_BATCH_NORM = {"s": (32,), "t": (32,)}
RESIDUAL = {"a": (3, 3, 8, 8), "b": (3, 3, 8, 8), **BATCH_NORM}
INVERTED = {"up": (1, 1, 8, 32), "depth": (3, 3, 1, 32), "down": (1, 1, 32, 8), **WIDE_BATCH_NORM}
SQUEEZED = {
    "up": (1, 1, 8, 32),
    "depth": (3, 3, 1, 32),
    "squeeze": (32, 8),
    "excite": (8, 32),
    "down": (1, 1, 32, 8),
}
CONVNEXT = {"depth": (7, 7, 1, 8), "up": (8, 32), "down": (32, 8)}
ATTENTION = {"qkv": (32, 96), "out": (32, 32), "up": (32, 128), "down": (128, 32)}

Form = Callable[[Any], None]
"""Rewrites a function in place into a form that another tool writes."""


@dataclass(frozen=True)
class ForeignStep:
    """A training step, and the form in which another tool writes it.

    Attributes:
        block: Applies a block to its input and its weights.
        shapes: The shapes of a block's weights, by name.
        count: The number of blocks.
        x: The input.
        optimizer: Maps parameters, gradients and state to new parameters and a new state.
        form: Rewrites the step into the foreign form.
        returns_loss: Whether the step returns the loss.
    """

    block: Callable[[Any, Any], Any]
    shapes: Mapping[str, tuple[int, ...]]
    count: int
    x: jax.Array
    optimizer: Callable[[Any, Any, Any], Any]
    form: Form
    returns_loss: bool = True


STEPS: dict[str, ForeignStep] = {
    "resnet_sgd": ForeignStep(residual, RESIDUAL, 8, IMAGES, sgd, loss_last),
    "resnet_momentum": ForeignStep(residual, RESIDUAL, 12, IMAGES, momentum, unchanged, returns_loss=False),
    "resnet_tuple": ForeignStep(residual, RESIDUAL, 6, IMAGES, adam, as_tuple),
    "mobilenet_adam": ForeignStep(inverted, INVERTED, 6, IMAGES, adam, loss_last),
    "mobilenet_no_loss": ForeignStep(inverted, INVERTED, 8, IMAGES, sgd, unchanged, returns_loss=False),
    "efficientnet": ForeignStep(squeezed, SQUEEZED, 6, IMAGES, momentum, loss_last),
    "convnext_adam": ForeignStep(convnext, CONVNEXT, 8, IMAGES, adam, loss_last),
    "vit_adam": ForeignStep(attention, ATTENTION, 6, TOKENS, adam, loss_last),
    "vit_lamb": ForeignStep(attention, ATTENTION, 8, TOKENS, lamb, loss_last),
    "vit_no_loss_tuple": ForeignStep(attention, ATTENTION, 6, TOKENS, adam, as_tuple, returns_loss=False),
    "mlp_tuple": ForeignStep(dense, {"w": (64, 64), "b": (64,)}, 12, normal(1024, 64), sgd, as_tuple),
    "cnn_pooled": ForeignStep(pooled, {"a": (3, 3, 8, 8)}, 6, normal(64, 32, 32, 8), sgd, loss_last),
}


def lowered(name: str, named: bool) -> jax.stages.Lowered:
    """Lower the training step. `named`: whether each block has a scope name."""
    description = STEPS[name]
    block, optimizer, x = description.block, description.optimizer, description.x
    draw.bit_generator.state = np.random.default_rng(1).bit_generator.state
    weights = draw_weights(description.count, **description.shapes)
    labels = jnp.asarray(draw.integers(0, CLASSES, 16))[np.arange(x.shape[0]) % 16]
    head = normal(x.shape[-1], CLASSES)

    def loss(p, x):
        for index, each in enumerate(p["blocks"]):
            with jax.named_scope(f"block{index}") if named else nullcontext():
                x = block(x, each)
        return cross_entropy(x.mean(tuple(range(1, x.ndim - 1))) @ p["head"], labels)

    def step(p, state, x):
        value, gradient = jax.value_and_grad(loss)(p, x)
        p, state = optimizer(p, gradient, state)
        return (value, p, state) if description.returns_loss else (p, state)

    p = {"blocks": weights, "head": head}
    zeros = jax.tree.map(jnp.zeros_like, p)
    return jax.jit(step).lower(p, (zeros, zeros) if optimizer in (adam, lamb) else zeros, x)
