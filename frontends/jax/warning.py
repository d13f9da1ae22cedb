"""What is said where a step stays as it is: why, and what to do."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence

from ...analysis.copies.loop_cuts import NOT_COUNTED, SMALLEST
from ...analysis.step.exchanges import NOT_ALIKE, WITH_COLLECTIVES
from ...search.choose import CHOSEN
from ...support.diagnostics import Refusal, Remark
from ...support.units import format_bytes
from ...transforms.loops import LEFT
from ...transforms.phase import FORWARD_OVER_REVERSE, NoGradient

INSIDE = "take the gradient inside: recompute.jax.jit(jax.value_and_grad(loss))"
LOOP_STAYS = LEFT.partition("{")[0]
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
    """A step runs as `jax.jit` runs it; the words say why, and what to do."""


_ON_THE_WAY = ("jax.", __name__.rpartition(".")[0])


def warn(words: str, kind: type[Warning] = NothingSaved) -> None:
    """At the line outside of JAX and of this package that led here."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and (level < 1 or str(frame.f_globals.get("__name__")).startswith(_ON_THE_WAY)):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, kind, stacklevel=level + 1)


def under_a_trace(name: str) -> str:
    return (
        f"{name} is called under jax.grad, jax.vmap or another transformation, and runs there as under jax.jit: "
        f"nothing is recomputed; {INSIDE}, and let it be the outermost"
    )


def not_alone(name: str) -> str:
    return (
        f"{name} is called inside of another jax.jit, and has effects or reads traced values that are no arguments: it "
        "runs there as under jax.jit, and nothing is recomputed; make the values arguments, or let it be the outermost"
    )


def barriers_are_dropped(name: str) -> str:
    return (
        f"{name} is called inside of another jax.jit: on CPU that one drops the barriers, and the saving with them, "
        f"unless it is given compiler_options={{'xla_disable_hlo_passes': 'cse_barrier_expander'}}, or XLA_FLAGS say so"
    )


def no_gradient(name: str) -> str:
    return f"{name} computes no gradient, so there is nothing to recompute and the plain step runs; {INSIDE}"


def last_reason(remarks: Sequence[Remark]) -> str:
    """The last remark that says more than that the step stays as it is."""
    reasons = [remark.reason for remark in remarks]
    telling = [reason for reason in reasons if not reason.startswith("nothing is recomputed")]
    return [*reasons[-1:], *telling][-1] if reasons else "no remarks"


def why_nothing(remarks: Sequence[Remark]) -> str:
    """Why a step stays as it is: a loop that does, since it holds most, what holds collectives, else the last reason;
    how the step would have been cut is none."""
    telling = [remark for remark in remarks if CHOSEN not in remark.reason]
    loops = [remark for remark in telling if remark.reason.startswith(LOOP_STAYS)]
    exchanges = [remark for remark in telling if remark.reason.endswith((NOT_ALIKE, WITH_COLLECTIVES))]
    return last_reason(loops or exchanges or telling or remarks)


def nothing_recomputed(name: str, reason: str) -> str:
    return f"{name}: the plain step runs: {reason}; {what_to_do(reason)}"


def what_to_do(reason: str) -> str:
    if "collectives=true" in reason:
        return COLLECTIVES
    if SMALLEST in reason:
        return IN_CHUNKS
    if NOT_COUNTED in reason:
        return COUNTED
    return TAKE_OUT if reason.endswith(NOT_ALIKE) else NAMES


def refused(name: str, error: Exception) -> str:
    """Of a step that cannot be rewritten."""
    if isinstance(error, NoGradient) and error.reason != FORWARD_OVER_REVERSE:
        return no_gradient(name)
    return f"{name}: the plain step runs: {error.reason if isinstance(error, Refusal) else error}"


def plain_is_less(name: str, plain_bytes: int, rewritten_bytes: int, reason: str) -> str:
    """Of temporaries, as the compiler measures them; `reason`: the last remark of the rewrite."""
    return (
        f"{name}: the plain step runs: compiled it needs {format_bytes(plain_bytes)} of temporaries, and "
        f"{format_bytes(rewritten_bytes)} recomputed ({reason}); {what_to_do(reason)}"
    )
