"""Forms of a step: plain, under its framework's remat, and recomputed by `recompute.jax.jit`."""

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
ArgumentsOf = Callable[[Built], tuple[Any, ...]]
"""Arguments for which a step is lowered."""
OF_THEIRS: Mapping[str, str | None] = {PLAIN: None, THEIRS: ALL, THEIRS_DOTS: DOTS}


@dataclass(frozen=True)
class Form:
    """Lowered form of a step.

    `seconds`: time of the rewrite alone, without JAX's lowering. `why`: the reason that the plain step is kept.
    """

    built: Built
    lowered: jax.stages.Lowered
    seconds: float = 0.0
    why: str | None = None


def options_of(peer: Peer) -> dict[str, dict[str, Any]]:
    """Return the options of `recompute.jax.jit` for each form. If no block has a name, the blocks that it finds are
    used."""
    same = {"segments": peer.segments}
    return {SAME: same, SAME_DOTS: {**same, "policy": "dots_saveable"}, OURS: {}}


def drawn(built: Built) -> tuple[Any, ...]:
    """Return arguments with values."""
    return built.arguments(0)


def shapes(built: Built) -> tuple[Any, ...]:
    """Return the shapes of the arguments. They suffice to compile a step and are cheaper than arrays, but have no
    sharding."""
    return jax.eval_shape(lambda: built.arguments(0))


def forms_of(
    peer: Peer, size: str, only: tuple[str, ...] = FORMS, arguments_of: ArgumentsOf = drawn
) -> Iterator[tuple[str, Form | Exception]]:
    """Yield each form, or the exception that prevented it. Call this in the step's context."""
    plain = peer.build(None, size)
    for name, remat in OF_THEIRS.items():
        if name in only:
            yield name, theirs(plain if remat is None else peer.build(remat, size), arguments_of)
    for name, options in options_of(peer).items():
        if name in only:
            try:
                yield name, ours(plain, options, arguments_of)
            except Exception as error:  # The error becomes a row of the table, beside the other forms.
                yield name, error


def theirs(built: Built, arguments_of: ArgumentsOf) -> Form:
    """Lower a step by `jax.jit`."""
    return Form(built, jax.jit(built.step, **built.options).lower(*arguments_of(built)))


def ours(built: Built, options: Mapping[str, Any], arguments_of: ArgumentsOf) -> Form:
    """Lower a step by `recompute.jax.jit` with these options, and time the rewrite alone."""
    arguments = arguments_of(built)
    # JAX caches the traced and lowered step, so that only the rewrite is timed below.
    jax.jit(built.step, **built.options).lower(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        start = time.process_time()
        lowered = recompute.jax.jit(built.step, **options, **built.options).lower(*arguments)
    return Form(built, lowered.optimized, time.process_time() - start, lowered.why)
