"""What the user asks to be recomputed, before anybody has looked at a step: the options of `recompute-mark` as data."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..rules.permission import Permission
from .phase_hint import PhaseHint


class BadSelection(ValueError):
    """A request that does not fit the step; the words name the culprit and the remedy."""


@dataclass(frozen=True)
class Selection:
    """Segments, and what is saved inside of them.

    segments: `auto`, a shell-style pattern for scopes (`block*`), or `none`, where marks alone say what is recomputed:
    MindSpore's `Cell.recompute`.
    segment_count: group the segments, in program order, into so many (0: as they are): `recompute_sequential`.
    checkpoints: names of values; the segments lie between them: Paddle's `RecomputeOptimizer`. They replace `segments`.
    skip: numbers of segments that are left alone: Paddle's `no_recompute_segments`.
    outputs: recompute what leaves a segment too: MindSpore's `output_recompute`.
    policy: what is saved inside, by the name of a `jax.checkpoint_policies`.
    names: the names that the policy speaks of: of scopes, of operations, or given by `recompute.name`.
    save: patterns for operations that are saved: PyTorch's list of a selective checkpoint.
    exclude: chains of operations of which some are saved, `pre:a>b; main:c; suf:d; num:1`: Paddle's
    `refined_ops_patterns`.
    segment_budgets: `layer*:30%,head:8MiB`, bytes that a segment saves for the backward pass at most, or a share of
    what it saves as it is; at the least work. Segments that match nothing of it are left alone, if nothing is said of
    `segments`.
    collectives: collectives may be repeated, on all devices alike, with channels of their own: MindSpore's
    `mp_comm_recompute`.
    preserve_rng_state: unseeded random operations are never repeated; if false they may draw again, other numbers.
    repeatable: patterns for targets of custom calls without side effects that return the same each time; the proof
    takes your word for that. The targets of LAPACK, cuDNN, Pallas and the like are known.
    primal_results: numbers of the results that the forward pass makes, such as the loss; for steps whose operations do
    not say their phase.
    primal_values: names of values that the forward pass makes, such as a loss that is not returned.
    cotangents: numbers of the arguments that are cotangents, which says the same.
    """

    segments: str = "auto"
    segment_count: int = 0
    checkpoints: tuple[str, ...] | None = None
    skip: tuple[int, ...] = ()
    outputs: bool = False
    policy: str = "nothing_saveable"
    names: tuple[str, ...] = ()
    save: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    segment_budgets: tuple[str, ...] = ()
    collectives: bool = False
    preserve_rng_state: bool = True
    repeatable: tuple[str, ...] = ()
    primal_results: tuple[int, ...] = ()
    primal_values: tuple[str, ...] = ()
    cotangents: tuple[int, ...] = ()

    @classmethod
    def of(cls, options: object) -> Selection:
        """The selection in an object that has its fields, such as a pass (`has_options`)."""
        return cls(**{field.name: getattr(options, field.name) for field in fields(Selection)})

    @property
    def phase_hint(self) -> PhaseHint:
        return PhaseHint(self.primal_results, self.primal_values, self.cotangents)

    @property
    def permission(self) -> Permission:
        return Permission(self.collectives, self.preserve_rng_state)


AUTO = Selection()
