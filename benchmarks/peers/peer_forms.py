"""Variants of a step: plain, with its framework's remat, and recomputed by `recompute.jax.jit`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax

import recompute
from recompute.benchmarks.harness.processes import with_cpu_seconds
from recompute.benchmarks.peers.peer import ALL, DOTS, Built, Peer

PLAIN, THEIRS, THEIRS_DOTS = "plain", "theirs", "theirs, dots saved"
SAME, SAME_DOTS, OURS = "ours, same blocks", "ours, same blocks, dots saved", "ours"
FORMS = (PLAIN, THEIRS, THEIRS_DOTS, SAME, SAME_DOTS, OURS)
ArgumentsOf = Callable[[Built], tuple[Any, ...]]
"""Returns the arguments with which a step is lowered."""
OF_THEIRS: Mapping[str, str | None] = {PLAIN: None, THEIRS: ALL, THEIRS_DOTS: DOTS}


@dataclass(frozen=True)
class PeerForm:
    """One variant of a step, lowered.

    Attributes:
        seconds: The time of the rewrite alone, without JAX's lowering.
        why: The reason why the plain step runs; None if the rewritten step runs.
    """

    built: Built
    lowered: jax.stages.Lowered
    seconds: float = 0.0
    why: str | None = None


def options_of(peer: Peer) -> dict[str, dict[str, Any]]:
    """Return the options of `recompute.jax.jit` for each variant.

    `peer.segments` names the blocks, or lets `recompute.jax.jit` find them.
    """
    same = {"segments": peer.segments}
    return {SAME: same, SAME_DOTS: {**same, "policy": "dots_saveable"}, OURS: {}}


def drawn_arguments(built: Built) -> tuple[Any, ...]:
    """Return the arguments drawn from seed 0."""
    return built.arguments(0)


def argument_shapes(built: Built) -> tuple[Any, ...]:
    """Return the arguments' shapes, which suffice to compile a step without sharding and are cheaper than arrays."""
    return jax.eval_shape(lambda: built.arguments(0))


def forms_of(
    peer: Peer, size: str, only: tuple[str, ...] = FORMS, arguments_of: ArgumentsOf = drawn_arguments
) -> Iterator[tuple[str, PeerForm | Exception]]:
    """Yield each variant in `only`, or the exception that prevented its lowering. Call this function in the step's
    context."""
    plain = peer.build(None, size)
    for name, remat in OF_THEIRS.items():
        if name in only:
            yield name, lower_with_jax(plain if remat is None else peer.build(remat, size), arguments_of)
    for name, options in options_of(peer).items():
        if name in only:
            try:
                yield name, lower_with_recompute(plain, options, arguments_of)
            except Exception as error:  # The error becomes a row of the table; the other forms still run.
                yield name, error


def lower_with_jax(built: Built, arguments_of: ArgumentsOf) -> PeerForm:
    """Lower a step with `jax.jit`."""
    return PeerForm(built, jax.jit(built.step, **built.options).lower(*arguments_of(built)))


def lower_with_recompute(built: Built, options: Mapping[str, Any], arguments_of: ArgumentsOf) -> PeerForm:
    """Lower a step with `recompute.jax.jit` and the given options, and time the rewrite alone."""
    arguments = arguments_of(built)
    # JAX caches the traced and lowered step, so that the time below is that of the rewrite alone.
    jax.jit(built.step, **built.options).lower(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", recompute.jax.NothingSaved)
        jitted = recompute.jax.jit(built.step, **options, **built.options)
        lowered, seconds = with_cpu_seconds(lambda: jitted.lower(*arguments))
    return PeerForm(built, lowered.optimized, seconds, lowered.why)
