"""The temporaries of a step, as this project's XLA:CPU model predicts them."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.order import functions_of
from recompute.transforms.inline import inline


def predicted_temporary_bytes(module: ModuleOp) -> int:
    """Return the bytes of temporaries that the XLA:CPU model predicts for a module. The module stays unchanged."""
    flat = module.clone()
    inline(flat)
    return max(xla_timeline(function).peak_bytes for function in functions_of(flat))
