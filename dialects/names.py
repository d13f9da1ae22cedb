"""The names of the discardable attributes."""

from __future__ import annotations

from typing import ClassVar


class Names:
    """The names of the attributes; `dialects/discardable.py` defines their meanings and valid values."""

    PREFIX: ClassVar[str] = "recompute."
    RECOMPUTE: ClassVar[str] = "recompute.recompute"
    SEGMENT: ClassVar[str] = "recompute.segment"
    NAME: ClassVar[str] = "recompute.name"
    PHASE: ClassVar[str] = "recompute.phase"
    ID: ClassVar[str] = "recompute.id"
    COPY: ClassVar[str] = "recompute.copy"
    DUPLICATED: ClassVar[str] = "recompute.duplicated"
    NEED_CSE: ClassVar[str] = "recompute.need_cse"
    TARGET_GRAD: ClassVar[str] = "recompute.target_grad"
    CHECKPOINT: ClassVar[str] = "recompute.checkpoint"
    OUTPUT_RECOMPUTE: ClassVar[str] = "recompute.output_recompute"
    MP_COMM_RECOMPUTE: ClassVar[str] = "recompute.mp_comm_recompute"
    PARALLEL_OPTIMIZER_COMM_RECOMPUTE: ClassVar[str] = "recompute.parallel_optimizer_comm_recompute"
    SLICE_ACTIVATION: ClassVar[str] = "recompute.recompute_slice_activation"
    PRESERVE_RNG_STATE: ClassVar[str] = "recompute.preserve_rng_state"
    SHARDS_KEPT: ClassVar[str] = "recompute.shards_kept"
    REPEATABLE: ClassVar[str] = "recompute.repeatable"
    CHECKPOINTS: ClassVar[str] = "recompute.checkpoints"
    OFFLOAD: ClassVar[str] = "recompute.offload"
    WHOLE: ClassVar[str] = "recompute.whole"
