"""Warnings for a step that runs unchanged: the reason, and a remedy."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence

from ...analysis.copies.loop_cuts import NOT_COUNTED, SMALLEST
from ...analysis.step.exchanges import NOT_ALIKE
from ...support.diagnostics import Refusal, Remark, Topic
from ...support.units import format_bytes
from ...transforms.phase import FORWARD_OVER_REVERSE, NoGradient

INSIDE = "take the gradient inside: recompute.jax.jit(jax.value_and_grad(loss))"
NAMES = (
    "name the model's blocks with jax.named_scope or recompute.jax.block, and choose them with segments='block*', "
    "or mark larger pieces"
)
COLLECTIVES = "allow them with recompute.jax.jit(step, collectives=True)"
IN_CHUNKS = (
    "checkpoint the carries of the loop at intervals with recompute.jax.jit(step, loops='periodic(auto)'), or give a "
    "budget"
)
COUNTED = "write the loop as jax.lax.scan, or as jax.lax.fori_loop with constant bounds"
TAKE_OUT = "take the collectives out of the branch, or give the loop a constant length"


class NothingSaved(UserWarning):
    """A step runs as under `jax.jit`; the message has the reason and a remedy."""


class BarriersDropped(UserWarning):
    """A step inside another `jax.jit` is rewritten, but its barriers are dropped, unless the outer `jax.jit` has the
    compiler option that the message names. The options of the outer one cannot be seen from inside."""


_SKIPPED_MODULES = ("jax.", "flax.nnx.", __name__.rpartition(".")[0])


def warn(words: str, kind: type[Warning] = NothingSaved) -> None:
    """Warn at the innermost line of the call stack outside JAX, flax nnx and this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and (level < 1 or str(frame.f_globals.get("__name__")).startswith(_SKIPPED_MODULES)):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, kind, stacklevel=level + 1)


def under_a_trace(name: str) -> str:
    return (
        f"{name} is called under jax.grad, jax.vmap or another transformation, and runs there as under jax.jit: "
        f"nothing is recomputed; {INSIDE}, as the outermost transformation"
    )


def not_alone(name: str) -> str:
    return (
        f"{name} is called inside another jax.jit, and has effects or closes over traced values: it runs there as "
        "under jax.jit, and nothing is recomputed; pass the values as arguments, or call it outside of jax.jit"
    )


def barriers_are_dropped(name: str) -> str:
    return (
        f"{name} is called inside another jax.jit, which drops the barriers on CPU, and the saving with them, unless "
        f"it has compiler_options={{'xla_disable_hlo_passes': 'cse_barrier_expander'}}, or XLA_FLAGS says so"
    )


def no_gradient(name: str) -> str:
    return f"{name} computes no gradient, so there is nothing to recompute and the plain step runs; {INSIDE}"


def last_reason(remarks: Sequence[Remark]) -> str:
    """Return the reason of the last remark, preferring those that do not merely start with "nothing is recomputed"."""
    reasons = [remark.reason for remark in remarks]
    specific = [reason for reason in reasons if not reason.startswith("nothing is recomputed")]
    return [*reasons[-1:], *specific][-1] if reasons else "no remarks"


def why_nothing(remarks: Sequence[Remark]) -> str:
    """Choose the reason to report for an unchanged step: loops first, since they save most; then collectives; else the
    last remark. The remark on the chosen attempt is no reason."""
    reasons = [remark for remark in remarks if remark.topic is not Topic.CHOICE]
    loops = [remark for remark in reasons if remark.topic is Topic.LOOP_LEFT]
    exchanges = [remark for remark in reasons if remark.topic is Topic.COLLECTIVES]
    return last_reason(loops or exchanges or reasons or remarks)


def nothing_recomputed(name: str, reason: str) -> str:
    return f"{name}: the plain step runs: {reason}; {what_to_do(reason)}"


def what_to_do(reason: str) -> str:
    """Return the remedy for a reason."""
    if "collectives=true" in reason:
        return COLLECTIVES
    if SMALLEST in reason:
        return IN_CHUNKS
    if NOT_COUNTED in reason:
        return COUNTED
    return TAKE_OUT if reason.endswith(NOT_ALIKE) else NAMES


def refused(name: str, error: Exception) -> str:
    """Return the warning for a step that cannot be rewritten."""
    if isinstance(error, NoGradient) and error.reason != FORWARD_OVER_REVERSE:
        return no_gradient(name)
    return f"{name}: the plain step runs: {error.reason if isinstance(error, Refusal) else error}"


def plain_is_less(name: str, plain_bytes: int, rewritten_bytes: int, reason: str) -> str:
    """Return the warning for a rewritten step with more temporaries than the plain one, both measured by the compiler.

    reason: The last remark of the rewrite.
    """
    return (
        f"{name}: the plain step runs: compiled it needs {format_bytes(plain_bytes)} of temporaries, and "
        f"{format_bytes(rewritten_bytes)} recomputed ({reason}); {what_to_do(reason)}"
    )
