"""Steps that take a gradient inside the loss, take several gradients, or accumulate gradients."""

# pyright: basic
# ruff: noqa: E731

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.families.parts import (
    add,
    descend,
    global_norm,
    layer_of,
    layers,
    loss_of,
    mean_square,
    mlp,
    normal,
    scanned,
    step,
    unrolled,
)


def _task_loss(w, x):
    return mean_square(jnp.tanh(jnp.tanh(x @ w["a"]) @ w["b"]))


def _task_weights():
    return {"a": normal(16, 64), "b": normal(64, 16)}


def _adapted(w, x):
    return descend(w, jax.grad(_task_loss)(w, x))


@step
def maml_unrolled(wrap):
    """Build a step that differentiates through an unrolled inner gradient descent (MAML)."""

    def loss(w, tasks):
        def of_task(x):
            adapted = w
            for _ in range(4):
                adapted = wrap(_adapted)(adapted, x)
            return _task_loss(adapted, x)

        return jnp.mean(jax.vmap(of_task)(tasks))

    return jax.value_and_grad(loss), (_task_weights(), normal(8, 64, 16))


@step
def maml_scan(wrap):
    """Build a step that differentiates through an inner gradient descent in a scan (MAML)."""

    def loss(w, tasks):
        def of_task(x):
            adapted, _ = lax.scan(wrap(lambda w, _: (_adapted(w, x), None)), w, None, length=8)
            return _task_loss(adapted, x)

        return jnp.mean(jax.vmap(of_task)(tasks))

    return jax.value_and_grad(loss), (_task_weights(), normal(8, 64, 16))


@step
def learned_optimizer(wrap):
    """Build a step that trains a learned optimizer, by differentiating through its updates in a scan."""

    def loss(rule, w, batches):
        def body(carry, x):
            w, momentum = carry
            gradient = jax.grad(_task_loss)(w, x)
            momentum = jax.tree.map(lambda m, g: rule["decay"] * m + g, momentum, gradient)
            change = jax.tree.map(lambda m, g: jnp.tanh(m * rule["scale"] + g) * rule["rate"], momentum, gradient)
            return (jax.tree.map(jnp.subtract, w, change), momentum), _task_loss(w, x)

        return jnp.mean(lax.scan(wrap(body), (w, jax.tree.map(jnp.zeros_like, w)), batches)[1])

    rule = {"decay": jnp.float32(0.9), "scale": jnp.float32(1.0), "rate": jnp.float32(0.1)}
    return jax.value_and_grad(loss), (rule, _task_weights(), normal(8, 64, 16))


def _force_field(wrap, network):
    """Build a step that fits energies, and forces that are the energy's gradient with respect to the positions."""

    def energy(p, positions):
        return jnp.sum(network(wrap, p["layers"], jnp.sin(positions @ p["in"])) ** 2) * 1e-3

    def loss(p, positions, forces):
        value, gradient = jax.value_and_grad(energy, 1)(p, positions)
        return value**2 * 1e-4 + mean_square(gradient - forces)

    p = {"in": normal(3, 32), "layers": layers(4)}
    return jax.value_and_grad(loss), (p, normal(128, 3), normal(128, 3))


@step
def forces_scanned(wrap):
    """Build a step that fits energies and forces, with the network's layers in a scan."""
    return _force_field(wrap, scanned)


@step
def forces_unrolled(wrap):
    """Build a step that fits energies and forces, with the network's layers unrolled."""
    return _force_field(wrap, unrolled)


@step
def gradient_penalty(wrap):
    """Build a step whose loss penalizes the norm of the critic's gradient with respect to the critic's inputs."""

    def loss(p, x):
        critic = lambda x: jnp.sum(unrolled(wrap, p, x), -1)
        slopes = jax.vmap(jax.grad(lambda x: critic(x[None])[0]))(x)
        return jnp.mean(critic(x)) + 10 * mean_square(jnp.sqrt(jnp.sum(slopes**2, -1) + 1e-6) - 1)

    return jax.value_and_grad(loss), (layers(5), normal(64, 32))


@step
def differential_equation(wrap):
    """Build a step whose loss contains second derivatives of the network with respect to its inputs."""

    def solution(p, x):
        return jnp.sum(unrolled(wrap, p["layers"], jnp.sin(x @ p["in"])))

    def loss(p, points):
        laplacian = lambda x: jnp.sum(jnp.diag(jax.hessian(solution, 1)(p, x)))
        return mean_square(jax.vmap(laplacian)(points))

    return jax.value_and_grad(loss), ({"in": normal(2, 32), "layers": layers(4)}, normal(64, 2))


@step
def hessian_vector_product(wrap):
    """Build a step that computes a Hessian-vector product, as a forward-mode derivative of a gradient."""
    gradient = jax.grad(loss_of(scanned, wrap))
    product = lambda p, v, x: jax.jvp(lambda p: gradient(p, x), (p,), (v,))
    return product, (layers(6), layers(6), normal(64, 32))


@step
def per_example(wrap):
    """Build a step that clips the gradient of each example before it sums them."""
    gradient = jax.vmap(jax.grad(loss_of(scanned, wrap)), (None, 0))

    def update(p, examples):
        gradients = gradient(p, examples)
        shares = jnp.minimum(1.0, 1 / jax.vmap(global_norm)(gradients))
        return descend(p, jax.tree.map(lambda g: jnp.tensordot(shares, g, 1), gradients))

    return update, (layers(4, 16, 32), normal(8, 16, 16))


def _adversaries(wrap, network):
    """Build a step that updates the discriminator, then updates the generator against the new discriminator."""

    def update(generator, discriminator, noise, x):
        fake = lambda generator: network(wrap, generator, noise)
        refusal = lambda discriminator, x, sign: jnp.mean(
            jax.nn.softplus(sign * network(wrap, discriminator, x).sum(-1))
        )
        of_discriminator = lambda d: refusal(d, x, -1) + refusal(d, fake(generator), 1)
        first, gradient = jax.value_and_grad(of_discriminator)(discriminator)
        discriminator = descend(discriminator, gradient)
        second, gradient = jax.value_and_grad(lambda g: refusal(discriminator, fake(g), -1))(generator)
        return first, second, descend(generator, gradient), discriminator

    return update, (layers(5), layers(5), normal(128, 32), normal(128, 32))


@step
def adversaries_unrolled(wrap):
    """Build a step that trains a generator and a discriminator, both with unrolled layers."""
    return _adversaries(wrap, unrolled)


@step
def adversaries_scanned(wrap):
    """Build a step that trains a generator and a discriminator, both with layers in a scan."""
    return _adversaries(wrap, scanned)


@step
def actor_critic(wrap):
    """Build a step that updates a critic, then updates an actor with the critic's advantages."""

    def update(actor, critic, states, returns):
        value_of = lambda critic: unrolled(wrap, critic, states).mean(-1)
        first, of_critic = jax.value_and_grad(lambda critic: mean_square(value_of(critic) - returns))(critic)
        advantage = lax.stop_gradient(returns - value_of(critic))
        score = lambda actor: jax.nn.log_softmax(unrolled(wrap, actor, states))[:, 0]
        second, of_actor = jax.value_and_grad(lambda actor: -jnp.mean(score(actor) * advantage))(actor)
        return first, second, descend(actor, of_actor), descend(critic, of_critic)

    return update, (layers(5), layers(5), normal(128, 32), normal(128))


@step
def sharpness_aware(wrap):
    """Build a step that takes a second gradient at perturbed weights (SAM)."""
    loss = loss_of(unrolled, wrap)

    def update(p, x):
        value, gradient = jax.value_and_grad(loss)(p, x)
        worse = descend(p, gradient, -0.05 / global_norm(gradient))
        return value, descend(p, jax.grad(loss)(worse, x))

    return update, (layers(6), normal(128, 32))


@step
def two_losses(wrap):
    """Build a step that adds the gradients of two losses, each with its own forward pass."""

    def update(p, x):
        first, entry = jax.value_and_grad(loss_of(unrolled, wrap))(p, x)
        second, other = jax.value_and_grad(lambda p: jnp.mean(jnp.abs(unrolled(wrap, p, x))))(p)
        return first, second, descend(p, add(entry, other))

    return update, (layers(5), normal(128, 32))


@step
def two_cotangents(wrap):
    """Build a step that pulls two cotangents back through the same forward pass."""

    def update(p, x):
        y, pull = jax.vjp(lambda p: unrolled(wrap, p, x), p)
        (entry,), (other,) = pull(2 * y), pull(jnp.sign(y))
        inner = sum(jnp.vdot(a, b) for a, b in zip(*map(jax.tree.leaves, (entry, other)), strict=True))
        return descend(p, add(entry, jax.tree.map(lambda g: inner * g, other)))

    return update, (layers(5), normal(128, 32))


def _accumulated(wrap, first):
    """Build a step that accumulates gradients over microbatches in a scan.

    `first` returns the initial sum and the remaining microbatches.
    """
    gradient = jax.value_and_grad(loss_of(unrolled, wrap))

    def update(p, batches):
        start, others = first(gradient, p, batches)
        (value, total), _ = lax.scan(lambda total, x: (add(total, gradient(p, x)), None), start, others)
        return value, descend(p, total)

    return update, (layers(5), normal(4, 64, 32))


@step
def accumulated(wrap):
    """Build a step that accumulates gradients over microbatches in a scan, starting from zeros."""
    zeros = lambda p: jax.tree.map(jnp.zeros_like, (jnp.float32(0), p))
    return _accumulated(wrap, lambda gradient, p, batches: (zeros(p), batches))


@step
def accumulated_peeled(wrap):
    """Build a step that accumulates gradients in a scan, with the first microbatch peeled off the loop."""
    return _accumulated(wrap, lambda gradient, p, batches: (gradient(p, batches[0]), batches[1:]))


@step
def accumulated_unrolled(wrap):
    """Build a step that accumulates gradients over unrolled microbatches."""
    gradient = jax.value_and_grad(loss_of(unrolled, wrap))

    def update(p, batches):
        total = gradient(p, batches[0])
        for x in batches[1:]:
            total = add(total, gradient(p, x))
        return total[0], descend(p, total[1])

    return update, (layers(5), normal(3, 64, 32))


@step
def accumulated_against_a_reference(wrap):
    """Build a step that accumulates gradients in a scan over microbatches and a frozen model's outputs."""

    def update(p, frozen, batches):
        targets = lax.map(lambda x: mlp(mlp(x, frozen), frozen), batches)

        def body(total, batch):
            x, target = batch
            return add(total, jax.value_and_grad(lambda p: mean_square(scanned(wrap, p, x) - target))(p)), None

        zeros = jax.tree.map(jnp.zeros_like, (jnp.float32(0), p))
        (value, total), _ = lax.scan(body, zeros, (batches, targets))
        return value, descend(p, total)

    return update, (layers(6), layer_of(layers(1), 0), normal(4, 64, 32))
