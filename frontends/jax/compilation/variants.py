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

    MERGED = "the rewritten step, after merging the copies of its own jax.checkpoint"
    RECOMPUTED = "the rewritten step"
    KEEPING = "the plain step, with its own barriers (jax.checkpoint) kept"
    PLAIN = "the plain step, just as jax.jit runs it"


@dataclass(frozen=True)
class CompiledStep:
    """A step after its variants were compiled and one of them was chosen.

    Attributes:
        compiled: The compiled variant that runs.
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

    @property
    def why(self) -> str | None:
        """The message with the reason why the plain step runs, and a remedy; None for a rewritten step."""
        return None if self.plain_reason is None else str(self.plain_reason)
