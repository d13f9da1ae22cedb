"""The advice of reports on random bits that the backward pass draws again."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from functools import cache
from typing import Any

import recompute
from recompute.test.unit.frontends.jax.steps import jax, jnp

LAYERS, WIDTH, BATCH = 4, 32, 512
BYTES_OF_MASKS = LAYERS * WIDTH * BATCH


def with_dropout(width: int, scope: str = "layer") -> tuple[Any, Any, Any, Any]:
    """Return a training step of layers with dropout, and its arguments."""
    weights = [jax.random.normal(jax.random.key(i), (width, width)) / width for i in range(LAYERS)]

    def loss(weights: Any, x: Any, key: Any) -> Any:
        for i, w in enumerate(weights):
            with jax.named_scope(f"{scope}{i}"):
                x = jax.nn.gelu(x @ w)
                with jax.named_scope("dropout"):
                    x = jnp.where(jax.random.bernoulli(jax.random.fold_in(key, i), 0.9, x.shape), x / 0.9, 0.0)
        return (x**2).mean()

    return jax.value_and_grad(loss), weights, jnp.ones((BATCH, width)), jax.random.key(0)


@cache
def report_with_draws() -> Any:
    """Return the report of the step without options, which the tests share."""
    step, *args = with_dropout(WIDTH)
    return recompute.jax.jit(step).report(*args)


def test_report_names_the_masks_whose_bits_are_drawn_again() -> None:
    report = report_with_draws()
    draws = report.recomputed.draws
    assert draws is not None and draws.mask_bytes == BYTES_OF_MASKS and draws.mask_names == ("dropout/lt",)
    text = " ".join(str(report).split())
    assert "next: the copies draw random bits again, at least " in text
    assert 'save=["dropout/lt"] saves the masks instead, which takes at least 64.0 KiB' in text


def test_saving_the_named_masks_lowers_the_extra_work() -> None:
    step, *args = with_dropout(WIDTH)
    redrawn = report_with_draws()
    saved = recompute.jax.jit(step, save=["dropout/lt"]).report(*args)
    assert saved.recomputed.draws is None and "random bits" not in str(saved)
    (plain, with_draws), (_, without_draws) = redrawn.flops, saved.flops
    assert plain and with_draws and without_draws and without_draws - plain < 0.5 * (with_draws - plain)
    assert saved.plain.temporaries and saved.chosen.temporaries
    assert saved.chosen.temporaries < 0.6 * saved.plain.temporaries


def test_draws_that_take_a_small_part_of_the_work_are_not_mentioned() -> None:
    step, *args = with_dropout(8 * WIDTH)
    report = recompute.jax.jit(step).report(*args)
    assert report.recomputed.draws is not None and "random bits" not in str(report)
