"""The selection of operations to recompute: the options of `recompute-mark`, and hints about the phases of a step.

The hints are for steps whose operations have no phases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields

from xdsl.ir import Operation

from ..rules.effects import Permission
from ..support.interface import option
from .option_facts import option_facts

Saves = Callable[[Operation, tuple[str, ...]], bool]
"""A policy: a predicate that tells whether an operation is saved, given the names of the selection."""


@dataclass(frozen=True)
class PhaseHint:
    """A hint about the phases of a step.

    Attributes:
        results: Indices of the results that the forward pass computes.
        values: Names of values that the forward pass computes.
        cotangents: Indices of the arguments that are cotangents.
    """

    results: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    cotangents: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.results or self.values or self.cotangents)

    def __str__(self) -> str:
        parts = (
            (option("primal-results"), self.results),
            (option("primal-values"), self.values),
            ("cotangents", self.cotangents),
        )
        return " ".join(f"{name}={','.join(map(str, listed))}" for name, listed in parts if listed)


class BadSelection(ValueError):
    """Raised for a selection that is invalid or does not apply to the step. The message names the option and the
    remedy."""


@dataclass(frozen=True)
class Selection:
    """The segments of a step, and the values that are saved inside segments.

    segments: `auto`, a shell-style pattern for scopes (`block*`), or `none`; with `none`, only marks, including
    segment attributes, select operations, as in MindSpore's `Cell.recompute`.
    segment_count: merge the segments, in program order, into this number of segments (0: no merging), as
    `recompute_sequential` does.
    checkpoints: names of values that cut the step into segments, as in Paddle's `RecomputeOptimizer`; replaces
    `segments`.
    skip: indices of segments that are not recomputed: Paddle's `no_recompute_segments`.
    outputs: also recompute the outputs of segments: MindSpore's `output_recompute`.
    policy: the values that are saved inside segments, as the name of a policy in `jax.checkpoint_policies`.
    names: the names for a policy that selects by name: names of operations, preceded by scopes (`attn/tanh`; `attn/*`
    for all in a scope), or names given by `recompute.name`.
    save: patterns of operations that are saved, like the list of a selective checkpoint in PyTorch.
    exclude: patterns of chains of operations that are saved, `"pre:a>b; main:c; suf:d; num:1"`: Paddle's
    `refined_ops_patterns`.
    segment_budgets: `"layer*:30%,head:8MiB"`: the maximum bytes that a segment saves for the backward pass, or a share
    of the bytes that it saves without recomputation; the extra work is minimized. Without `segments`, segments that no
    pattern matches are not recomputed.
    collectives: allow collectives to be recomputed, equally often on all devices and on new channels: MindSpore's
    `mp_comm_recompute`.
    preserve_rng_state: never recompute unseeded random operations; if false, a copy may draw different numbers.
    The proof rejects such a result, so it is written only with `--no-proof` (in Python, `proof=False`).
    repeatable: target patterns of custom calls without side effects whose results depend only on their operands. The
    proof assumes this without verification. The targets of LAPACK, cuDNN, Pallas and others are known.
    primal_results: indices of the results of the forward pass, such as the loss, for steps whose operations have no
    phase.
    primal_values: names of values of the forward pass, such as a loss that is not returned.
    cotangents: indices of the arguments that are cotangents; phases can also be inferred from these.
    """

    segments: str = "auto"
    segment_count: int = field(default=0, metadata=option_facts(minimum=0))
    checkpoints: tuple[str, ...] | None = None
    skip: tuple[int, ...] = ()
    outputs: bool = False
    policy: str = "nothing_saveable"
    names: tuple[str, ...] = ()
    save: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    segment_budgets: tuple[str, ...] = ()
    collectives: bool = False
    preserve_rng_state: bool = field(default=True, metadata=option_facts(selects=False))
    repeatable: tuple[str, ...] = field(default=(), metadata=option_facts(selects=False))
    primal_results: tuple[int, ...] = field(default=(), metadata=option_facts(selects=False))
    primal_values: tuple[str, ...] = field(default=(), metadata=option_facts(selects=False))
    cotangents: tuple[int, ...] = field(default=(), metadata=option_facts(selects=False))

    @classmethod
    def of(cls, options: object) -> Selection:
        """Return the selection that an object with the same fields describes, such as a pass with `has_options`."""
        return cls(**{field.name: getattr(options, field.name) for field in fields(Selection)})

    @property
    def phase_hint(self) -> PhaseHint:
        return PhaseHint(self.primal_results, self.primal_values, self.cotangents)

    @property
    def permission(self) -> Permission:
        return Permission(self.collectives, self.preserve_rng_state)


@dataclass(frozen=True)
class SelectionByFunction(Selection):
    """A selection whose policy is a function: the operations for which `saveable` returns true are saved."""

    saveable: Saves = field(kw_only=True)


AUTO = Selection()
