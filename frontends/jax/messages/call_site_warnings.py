"""The warnings of `recompute.jax`, which point to the line of the user's code that calls the step."""

from __future__ import annotations

import inspect
import warnings

from ...nothing_saved import NothingSaved as NothingSaved


class BarriersDropped(UserWarning):
    """A step inside another `jax.jit` is rewritten, but its barriers may be dropped.

    They are dropped unless the outer `jax.jit` has the compiler option that the message names. The step cannot read the
    options of the outer `jax.jit`.
    """


class OptionsIgnored(UserWarning):
    """A step with options of its own is called inside another `recompute.jax.jit`, whose options apply instead."""


class MarkWithoutEffect(UserWarning):
    """A mark, such as `recompute.jax.save`, or a part of the options changes nothing in a step that is rewritten."""


class UnmatchedName(UserWarning):
    """A name in a policy of `jax.checkpoint_policies` matches no value of the step, while other names of the policy do
    match."""


_SKIPPED_MODULES = ("jax.", "flax.nnx.", "equinox.", __name__.removesuffix("messages.call_site_warnings"))


def warn(words: str, kind: type[Warning] = NothingSaved) -> None:
    """Warn at the innermost line of the call stack outside JAX, flax nnx, equinox and this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and (level < 1 or str(frame.f_globals.get("__name__")).startswith(_SKIPPED_MODULES)):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, kind, stacklevel=level + 1)
