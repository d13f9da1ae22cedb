"""`recompute.jax`: compile training steps as `jax.jit` does, with less memory.

    step = recompute.jax.jit(train_step, donate_argnums=0)  # instead of jax.jit
    state, loss = step(state, batch)
    print(step.report(state, batch))

docs/jax.md describes options, warnings and limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# Imported eagerly: `import recompute.jax` must report a missing JAX, and models use
# `jax.ad_checkpoint.checkpoint_name`.
from jax import ad_checkpoint as _ad_checkpoint  # noqa: F401  # pyright: ignore[reportUnusedImport]

from ...support.lazy_names import lazy_names

if TYPE_CHECKING:
    from . import mindspore as mindspore
    from . import paddle as paddle
    from .annotations.named_modules import named as named
    from .annotations.scopes import block as block
    from .annotations.value_marks import again as again
    from .annotations.value_marks import offload as offload
    from .annotations.value_marks import save as save
    from .explain_step import explain as explain
    from .internals.private import UnsupportedJax as UnsupportedJax
    from .jitted import Jitted as Jitted
    from .jitted import jit as jit
    from .keywords.off_switch import disabled as disabled
    from .lowering.lowered import Lowered as Lowered
    from .messages.call_site_warnings import BarriersDropped as BarriersDropped
    from .messages.call_site_warnings import MarkWithoutEffect as MarkWithoutEffect
    from .messages.call_site_warnings import NothingSaved as NothingSaved
    from .messages.call_site_warnings import OptionsIgnored as OptionsIgnored
    from .messages.call_site_warnings import UnmatchedName as UnmatchedName
    from .reports.step_report import Report as Report

__all__ = [
    "BarriersDropped",
    "Jitted",
    "Lowered",
    "MarkWithoutEffect",
    "NothingSaved",
    "OptionsIgnored",
    "Report",
    "UnmatchedName",
    "UnsupportedJax",
    "again",
    "block",
    "disabled",
    "explain",
    "jit",
    "mindspore",
    "named",
    "offload",
    "paddle",
    "save",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "explain_step": "explain",
        "jitted": "Jitted jit",
        "lowering.lowered": "Lowered",
        "annotations.value_marks": "again offload save",
        "keywords.off_switch": "disabled",
        "internals.private": "UnsupportedJax",
        "reports.step_report": "Report",
        "annotations.named_modules": "named",
        "annotations.scopes": "block",
        "messages.call_site_warnings": "BarriersDropped MarkWithoutEffect NothingSaved OptionsIgnored UnmatchedName",
    },
    modules=("mindspore", "paddle"),
)
