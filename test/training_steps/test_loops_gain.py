"""Loops whose body applies shape operations to a row of a scanned array, to a constant, or to the counter."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.driver.rewrites import proved_rewrite
from recompute.driver.verification.assumptions import Assumptions
from recompute.driver.verification.verified import NotProved, prove_equal
from recompute.proof.verdicts.verdict import Proof

pytest.importorskip("jax")

from recompute.test.unit.frontends.jax.steps import far_apart, jax, jnp, temporaries, tree

LAYERS, ROWS, WIDTH = 8, 128, 24
CONSTANT = jnp.linspace(0.5, 1.5, WIDTH)


def normalized(h: Any, axis: int) -> Any:
    centred = h - h.mean(axis, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(axis, keepdims=True) + 1e-5)


def scaled(gain: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a body that multiplies the output of its layer by the gain of its parameters."""
    return lambda h, p: h + jnp.tanh(h @ p["w"]) * gain(p)


BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "scale after the dot": scaled(lambda p: p["g"]),
    "scale before the dot": lambda h, p: h + jnp.tanh((h * p["g"]) @ p["w"]),
    "layer norm": lambda h, p: h + jnp.tanh((normalized(h, -1) * p["g"]) @ p["w"]),
    "batch norm": lambda h, p: h + jnp.tanh(normalized(h @ p["w"], 0) * p["g"]),
    "new dimension": scaled(lambda p: p["g"][None]),
    "reshape": scaled(lambda p: p["g"].reshape(1, WIDTH)),
    "transpose": scaled(lambda p: p["g"][:, None].T),
    "broadcast": scaled(lambda p: jnp.broadcast_to(p["g"], (ROWS, WIDTH))),
    "convert": scaled(lambda p: p["g"].astype(jnp.bfloat16).astype(jnp.float32)),
    "slice": scaled(lambda p: p["c"][None, ROWS - WIDTH :]),
    "reverse": scaled(lambda p: p["g"][::-1]),
    "column": scaled(lambda p: p["c"][:, None]),
    "constant": scaled(lambda p: CONSTANT[None]),
    "counter": scaled(lambda p: p["i"].astype(jnp.float32)[None, None]),
}


def arguments() -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(0), 4)
    shapes = {"w": (LAYERS, WIDTH, WIDTH), "g": (LAYERS, WIDTH), "c": (LAYERS, ROWS)}
    drawn = {
        name: jax.random.normal(key, shape) * 0.3 for key, (name, shape) in zip(keys, shapes.items(), strict=False)
    }
    return drawn, jax.random.normal(keys[3], (ROWS, WIDTH))


def step_of(name: str, around: Callable[[Any], Any] = lambda body: body) -> Callable[..., Any]:
    def loss(parameters: Any, x: Any) -> Any:
        scanned = {**parameters, "i": jnp.arange(LAYERS)}
        return jnp.mean(jax.lax.scan(around(lambda h, p: (BODIES[name](h, p), None)), x, scanned)[0] ** 2)

    return jax.value_and_grad(loss)


@pytest.mark.parametrize("name", BODIES)
def test_loop_is_recomputed_and_proved_equal(name: str) -> None:
    lowered = recompute.jax.jit(step_of(name), measure=False).lower(*arguments())
    assert lowered.why is None and lowered.rewritten is not None and lowered.rewritten.copies
    assert lowered.rewritten.proof is not None and lowered.rewritten.proof.proved
    assert not [remark for remark in lowered.rewritten.remarks if "not proved" in remark.reason]


def test_scaled_loop_needs_no_more_than_checkpoint_around_the_body() -> None:
    given = arguments()
    lowered = recompute.jax.jit(step_of("scale after the dot"), measure=False).lower(*given)
    rewritten, plain = lowered.compile(), lowered.compile_plain()
    checkpointed = jax.jit(step_of("scale after the dot", jax.checkpoint)).lower(*given).compile()
    assert temporaries(rewritten) <= 1.02 * temporaries(checkpointed) < temporaries(plain)
    assert not far_apart(rewritten(*given), plain(*given))


@pytest.mark.parametrize("name", ["scale after the dot", "layer norm", "new dimension"])
def test_results_have_the_same_bits(name: str) -> None:
    given = arguments()
    results = tree.leaves(recompute.jax.jit(step_of(name))(*given))
    expected = tree.leaves(jax.jit(step_of(name))(*given))
    assert all((result == other).all() for result, other in zip(results, expected, strict=True))


def test_warning_states_that_the_proof_of_the_loops_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = list[ModuleOp]()

    def prove(before: ModuleOp, after: ModuleOp, assumptions: Assumptions) -> Proof:
        attempts.append(after)
        if len(attempts) == 1:
            raise NotProved(Proof(proved=False, reason="the loops differ"), "nothing is returned")
        return prove_equal(before, after, assumptions)

    monkeypatch.setattr(proved_rewrite, "prove_equal", prove)
    monkeypatch.setenv("RECOMPUTE_CACHE_DIR", "")
    with pytest.warns(recompute.jax.NothingSaved, match="rewrite is not proved equal: the loops differ; report this"):
        recompute.jax.jit(step_of("scale after the dot"))(*arguments())
