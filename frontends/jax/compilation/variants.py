"""The variants of a step, and the compiled variant that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import jax

from ....driver.rewrites.rewritten import Rewritten
from ..messages.why_plain import PlainReason


class Variant(Enum):
    """The variants of a step. If the temporaries of two variants differ by less than 1 %, the variant that is listed
    later in this class runs."""

    MERGED = "the step with its own jax.checkpoint merged back, rewritten"
    RECOMPUTED = "the rewritten step"
    KEEPING = "the plain step, with barriers of its own (jax.checkpoint) that stay"
    PLAIN = "the plain step, just as jax.jit runs it"


@dataclass(frozen=True)
class CompiledStep:
    """The compiled variant of a step that runs.

    Attributes:
        compiled: The compiled variant.
        plain_reason: The reason why the plain step runs; None for a rewritten step.
        variant: The variant that runs.
        rewritten: The rewrite; None for a plain step.
        sizes: The temporaries of each compiled variant in bytes, as measured by the compiler; empty if only one was
            compiled.
    """

    compiled: jax.stages.Compiled
    plain_reason: PlainReason | None
    variant: Variant
    rewritten: Rewritten | None
    sizes: Mapping[Variant, int | None]
