"""Compiler settings by platform: the defaults, barriers kept (CPU), and other schedulers (GPU)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recompute.benchmarks.xla_settings import KEEP_BARRIERS

HIDING, SLOP = "xla_gpu_enable_latency_hiding_scheduler", "xla_gpu_memory_limit_slop_factor"
KEPT, DEFAULT = "barriers kept", "default flags"


@dataclass(frozen=True)
class Setting:
    """A named set of compiler options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


CPU = (Setting(KEPT, KEEP_BARRIERS), Setting(DEFAULT))
GPU = (
    Setting(DEFAULT),
    Setting("latency hiding on", {HIDING: True}),
    Setting("latency hiding off", {HIDING: False}),
    Setting("latency hiding on, slop factor 50", {HIDING: True, SLOP: 50}),
)
OTHER = (Setting(DEFAULT),)


def settings_of(platform: str) -> tuple[Setting, ...]:
    """Return the settings of a platform. The bars apply to the first setting.

    By default, XLA removes barriers on CPU, but keeps them on GPU.
    """
    return {"cpu": CPU, "gpu": GPU, "cuda": GPU, "rocm": GPU}.get(platform, OTHER)
