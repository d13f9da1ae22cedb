"""The warnings of `recompute.jax`, which point to the line of the user's code that calls the step."""

from __future__ import annotations

import inspect
import warnings

from ...nothing_saved import NothingSaved as NothingSaved


class BarriersDropped(UserWarning):
    """Warns that a step inside another `jax.jit` is rewritten, but that its barriers may be dropped.

    The barriers are dropped unless the outer `jax.jit` has the compiler option that the message names. The step cannot
    read the options of the outer `jax.jit`.
    """


class OptionsIgnored(UserWarning):
    """Warns that a step's own options are ignored, because it is called inside another `recompute.jax.jit`, whose
    options apply."""


class MarkWithoutEffect(UserWarning):
    """Warns that a mark, such as `recompute.jax.save`, or a part of the options changes nothing in a rewritten step."""


class UnmatchedName(UserWarning):
    """Warns that a name in a policy of `jax.checkpoint_policies` matches no value of the step, although other names of
    the policy match values."""


_SKIPPED_MODULES = ("jax.", "flax.nnx.", "equinox.", __name__.removesuffix("messages.call_site_warnings"))


def warn(words: str, kind: type[Warning] = NothingSaved) -> None:
    """Warn at the innermost line of the call stack outside JAX, flax nnx, equinox and this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and (level < 1 or str(frame.f_globals.get("__name__")).startswith(_SKIPPED_MODULES)):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, kind, stacklevel=level + 1)
