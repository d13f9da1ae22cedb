"""Steps with unusual losses: two towers, triplets, a teacher, a gradient penalty, a flow, and an energy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from recompute.benchmarks.unseen.held_back.layers import (
    affine,
    attention,
    batch_norm,
    conv,
    group_norm,
    layer_norm,
    matrix,
    transposed_convolution,
    vectors,
)
from recompute.benchmarks.unseen.step_parts import Blocks, UnseenStep, adam, adam_state, integers, momentum, sgd, shape


def two_towers(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains an image tower and a text tower with a symmetric contrastive loss."""
    run = Blocks(checkpoint, scopes)

    def see(p: Any, x: jax.Array) -> jax.Array:
        return x + conv(jax.nn.gelu(group_norm(p["norm"], conv(x, p["w1"]), 4)), p["w2"])

    def read(p: Any, x: jax.Array) -> jax.Array:
        y = layer_norm(p["norm"], x)
        x = x + attention(y @ p["q"], y @ p["k"], y @ p["v"], 4)
        return x + affine(p["out"], jax.nn.gelu(affine(p["in"], x)))

    def unit(x: jax.Array) -> jax.Array:
        return x * jax.lax.rsqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-6)

    def loss(params: Any, image: jax.Array, words: jax.Array) -> jax.Array:
        x = conv(image, params["stem"], 2)
        for i, p in enumerate(params["visual"]):
            x = run(f"visual/block{i}", see, p, x)
        y = params["embed"][words]
        for i, p in enumerate(params["textual"]):
            y = run(f"textual/block{i}", read, p, y)
        a, b = unit(affine(params["from_image"], x.mean((2, 3)))), unit(affine(params["from_text"], y.mean(1)))
        logits = jnp.exp(params["temperature"]) * a @ b.T
        both = jax.nn.log_softmax(logits, axis=0) + jax.nn.log_softmax(logits, axis=1)
        return -0.5 * jnp.mean(jnp.diagonal(both))

    def step(params: Any, state: Any, image: jax.Array, words: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, image, words)
        return value, *adam(params, grads, state)

    see_one = {"norm": vectors(48), "w1": shape(48, 24, 3, 3), "w2": shape(24, 48, 1, 1)}
    read_one = {"norm": vectors(48), "in": matrix(48, 144), "out": matrix(144, 48)} | {n: shape(48, 48) for n in "qkv"}
    params = {"stem": shape(24, 3, 5, 5), "visual": [see_one] * 4, "embed": shape(200, 48), "textual": [read_one] * 4}
    params |= {"from_image": matrix(24, 32), "from_text": matrix(48, 32), "temperature": shape()}
    return UnseenStep(step, (params, adam_state(params), shape(12, 3, 64, 64), integers(12, 40)))


def siamese_triplet(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step with a triplet loss, in which each block concatenates anchor, positive and negative."""
    run = Blocks(checkpoint, scopes, inside=True)

    def block(p: Any, triple: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        joined = jnp.concatenate(triple)
        y = jax.nn.relu(batch_norm(p["norm"], conv(joined, p["w"])))
        return tuple(jnp.split(joined + conv(y, p["back"]), 3))

    def loss(params: Any, *triple: jax.Array) -> jax.Array:
        xs = tuple(conv(x, params["stem"], 2) for x in triple)
        for i, p in enumerate(params["blocks"]):
            xs = run(f"siamese/shared_{i}", block, p, xs)
        anchor, positive, negative = (affine(params["out"], x.mean(-1)) for x in xs)
        near, far = jnp.sum((anchor - positive) ** 2, -1), jnp.sum((anchor - negative) ** 2, -1)
        return jnp.mean(jax.nn.softplus(near - far + 0.3))

    def step(params: Any, *triple: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *triple)
        return value, sgd(params, grads)

    entry = {"w": shape(40, 24, 5), "back": shape(24, 40, 3), "norm": vectors(40)}
    params = {"stem": shape(24, 2, 7), "blocks": [entry] * 5, "out": matrix(24, 16)}
    return UnseenStep(step, (params, *[shape(8, 2, 1024)] * 3))


def mean_teacher(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a student to predict the output of its slowly averaged copy for another view of the
    input.
    """
    run = Blocks(checkpoint, scopes)

    def block(p: Any, x: jax.Array) -> jax.Array:
        return x + affine(p["out"], jax.nn.mish(affine(p["in"], layer_norm(p["norm"], x))))

    def encode(params: Any, x: jax.Array, subject: str) -> jax.Array:
        x = affine(params["stem"], x)
        for i, p in enumerate(params["blocks"]):
            x = run(f"{subject}/res{i}", block, p, x)
        return x

    def loss(student: Any, teacher: Any, first: jax.Array, second: jax.Array) -> jax.Array:
        made = affine(student["predict"], encode(student, first, "student"))
        aim = jax.lax.stop_gradient(encode(teacher, second, "teacher"))
        cosine = jnp.sum(made * aim, -1) / (jnp.linalg.norm(made, axis=-1) * jnp.linalg.norm(aim, axis=-1) + 1e-6)
        return 2.0 - 2.0 * jnp.mean(cosine)

    def step(student: Any, teacher: Any, velocity: Any, first: jax.Array, second: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(student, teacher, first, second)
        student, velocity = momentum(student, grads, velocity)
        teacher = jax.tree.map(lambda t, s: t + 0.01 * (s - t), teacher, student)
        return value, student, teacher, velocity

    entry = {"norm": vectors(60), "in": matrix(60, 150), "out": matrix(150, 60)}
    params = {"stem": matrix(100, 60), "blocks": [entry] * 5, "predict": matrix(60, 60)}
    return UnseenStep(step, (params, params, params, shape(1500, 100), shape(1500, 100)), donate=(0, 1, 2))


def wasserstein_penalty(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains the critic and the generator of a Wasserstein GAN, with a gradient penalty."""
    run = Blocks(checkpoint, scopes)

    def make(p: Any, x: jax.Array) -> jax.Array:
        return jnp.tanh(batch_norm(p["norm"], transposed_convolution(x, p["w"])))

    def score(p: Any, x: jax.Array) -> jax.Array:
        return jax.nn.softplus(conv(jnp.tanh(conv(x, p["same"])), p["half"], 2))

    def generator(g: Any, z: jax.Array) -> jax.Array:
        x = affine(g["stem"], z).reshape(-1, 32, 6, 6)
        for i, p in enumerate(g["layers"]):
            x = run(f"generator.{i}", make, p, x)
        return conv(x, g["last"])

    def critic(c: Any, x: jax.Array) -> jax.Array:
        for i, p in enumerate(c["layers"]):
            x = run(f"critic.{i}", score, p, x)
        return x.mean((2, 3)) @ c["last"]

    def critic_loss(c: Any, real: jax.Array, fake: jax.Array, mix: jax.Array) -> jax.Array:
        between = mix * real + (1.0 - mix) * fake
        slope = jax.grad(lambda x: jnp.sum(critic(c, x)))(between)
        length = jnp.sqrt(jnp.sum(slope**2, axis=(1, 2, 3)) + 1e-8)
        return jnp.mean(critic(c, fake) - critic(c, real)) + 10.0 * jnp.mean((length - 1.0) ** 2)

    def step(g: Any, c: Any, z: jax.Array, real: jax.Array, mix: jax.Array) -> Any:
        fake = jax.lax.stop_gradient(generator(g, z))
        worst, grads = jax.value_and_grad(critic_loss)(c, real, fake, mix)
        value, pull = jax.value_and_grad(lambda g: -jnp.mean(critic(c, generator(g, z))))(g)
        return value, worst, sgd(g, pull), sgd(c, grads)

    ups = [{"w": shape(b, a, 4, 4), "norm": vectors(b)} for a, b in [(32, 24), (24, 16), (16, 12)]]
    downs = [{"same": shape(a, a, 3, 3), "half": shape(b, a, 3, 3)} for a, b in [(2, 12), (12, 16), (16, 24), (24, 32)]]
    g = {"stem": matrix(20, 32 * 36), "layers": ups, "last": shape(2, 12, 3, 3)}
    c = {"layers": downs, "last": shape(32)}
    return UnseenStep(step, (g, c, shape(6, 20), shape(6, 2, 48, 48), shape(6, 1, 1, 1)))


def flow_images(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a normalizing flow of channel norms, mixing matrices and coupling layers."""
    run = Blocks(checkpoint, scopes)

    def flow(p: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        area = x.shape[2] * x.shape[3]
        x = (x + p["shift"][:, None, None]) * jnp.exp(p["log_scale"])[:, None, None]
        mix = jnp.tril(p["mix"], -1) + jnp.diag(jnp.exp(p["diagonal"]))
        x = jnp.einsum("oc,bchw->bohw", mix[::-1], x)
        kept, moved = jnp.split(x, 2, axis=1)
        scale, shift = jnp.split(conv(jax.nn.relu(conv(kept, p["w1"])), p["w2"]), 2, axis=1)
        gate = jax.nn.sigmoid(scale + 2.0)
        change = area * jnp.sum(p["log_scale"] + p["diagonal"]) + jnp.sum(jnp.log(gate), axis=(1, 2, 3))
        return jnp.concatenate([kept, moved * gate + shift], axis=1), change

    def loss(params: Any, x: jax.Array) -> jax.Array:
        volume = 0.0
        for i, p in enumerate(params):
            x, change = run(f"glow/flow_{i}", flow, p, x)
            volume += change
        return jnp.mean(0.5 * jnp.sum(x**2, axis=(1, 2, 3)) - volume) / x[0].size

    def step(params: Any, state: Any, x: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x)
        return value, *adam(params, grads, state)

    entry = {"shift": shape(12), "log_scale": shape(12), "mix": shape(12, 12), "diagonal": shape(12)}
    entry |= {"w1": shape(40, 6, 3, 3), "w2": shape(12, 40, 3, 3)}
    return UnseenStep(step, ([entry] * 6, adam_state([entry] * 6), shape(8, 12, 32, 32)), donate=(0, 1))


def hamiltonian_slopes(checkpoint: bool, scopes: bool) -> UnseenStep:
    """Build a step that trains a Hamiltonian network, whose per-sample gradients must match the motion."""
    run = Blocks(checkpoint, scopes)

    def block(p: Any, y: jax.Array) -> jax.Array:
        return y + affine(p["out"], jnp.tanh(affine(p["in"], y)))

    def energy(params: Any, state: jax.Array) -> jax.Array:
        y = affine(params["lift"], state)
        for i, p in enumerate(params["blocks"]):
            y = run(f"energy/{i}", block, p, y)
        return jnp.sum(y**2)

    def loss(params: Any, state: jax.Array, motion: jax.Array) -> jax.Array:
        by_place, by_momentum = jnp.split(jax.vmap(jax.grad(energy, argnums=1), (None, 0))(params, state), 2, axis=-1)
        return jnp.mean((jnp.concatenate([by_momentum, -by_place], axis=-1) - motion) ** 2)

    params = {"lift": matrix(8, 32), "blocks": [{"in": matrix(32, 64), "out": matrix(64, 32)}] * 5}
    return UnseenStep(jax.value_and_grad(loss), (params, shape(2048, 8), shape(2048, 8)))


STEPS = {
    "two_towers": two_towers,
    "siamese_triplet": siamese_triplet,
    "mean_teacher": mean_teacher,
    "wasserstein_penalty": wasserstein_penalty,
    "flow_images": flow_images,
    "hamiltonian_slopes": hamiltonian_slopes,
}
