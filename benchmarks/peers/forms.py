"""A step in its forms: plain, under its framework's remat, and recomputed by `recompute.jax.jit`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax

import recompute
from recompute.benchmarks.peers.peer import ALL, DOTS, Built, Peer

PLAIN, THEIRS, THEIRS_DOTS = "plain", "theirs", "theirs, dots saved"
SAME, SAME_DOTS, OURS = "ours, same blocks", "ours, same blocks, dots saved", "ours"
FORMS = (PLAIN, THEIRS, THEIRS_DOTS, SAME, SAME_DOTS, OURS)
Given = Callable[[Built], tuple[Any, ...]]
"""Arguments to lower a step for."""
OF_THEIRS: Mapping[str, str | None] = {PLAIN: None, THEIRS: ALL, THEIRS_DOTS: DOTS}


@dataclass(frozen=True)
class Form:
    """seconds: of ours alone, without what JAX needs to lower. why: the reason why the plain step stays as it is."""

    built: Built
    lowered: jax.stages.Lowered
    seconds: float = 0.0
    why: str | None = None


def options_of(peer: Peer) -> dict[str, dict[str, Any]]:
    """What `recompute.jax.jit` is told. Where no block has a name, the same are those found."""
    same = {"segments": peer.segments}
    return {SAME: same, SAME_DOTS: {**same, "policy": "dots_saveable"}, OURS: {}}


def drawn(built: Built) -> tuple[Any, ...]:
    return built.arguments(0)


def shapes(built: Built) -> tuple[Any, ...]:
    """Enough to compile a step, and quicker than arrays; they do not say how arrays lie on a mesh."""
    return jax.eval_shape(lambda: built.arguments(0))


def forms_of(
    peer: Peer, size: str, only: tuple[str, ...] = FORMS, provided: Given = drawn
) -> Iterator[tuple[str, Form | Exception]]:
    """Each form, or what stood in its way. Run this inside of the step's context."""
    plain = peer.build(None, size)
    for name, remat in OF_THEIRS.items():
        if name in only:
            yield name, theirs(plain if remat is None else peer.build(remat, size), provided)
    for name, options in options_of(peer).items():
        if name in only:
            try:
                yield name, ours(plain, options, provided)
            except Exception as error:  # a row with an error is a finding, and the other rows are wanted too
                yield name, error


def theirs(built: Built, provided: Given) -> Form:
    return Form(built, jax.jit(built.step, **built.options).lower(*provided(built)))


def ours(built: Built, options: Mapping[str, Any], provided: Given) -> Form:
    arguments = provided(built)
    # JAX keeps what it traced and lowered: what is timed after this is ours.
    jax.jit(built.step, **built.options).lower(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        start = time.process_time()
        lowered = recompute.jax.jit(built.step, **options, **built.options).lower(*arguments)
    return Form(built, lowered.less, time.process_time() - start, lowered.why)
