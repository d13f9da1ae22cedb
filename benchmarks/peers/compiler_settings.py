"""Compiler settings by platform: default settings, settings that keep barriers on CPU, and settings with other
schedulers on GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS

HIDING, SLOP = "xla_gpu_enable_latency_hiding_scheduler", "xla_gpu_memory_limit_slop_factor"
BARRIERS_KEPT, DEFAULT = "barriers kept", "default flags"


@dataclass(frozen=True)
class CompilerSetting:
    """A named set of compiler options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


CPU = (CompilerSetting(BARRIERS_KEPT, KEEP_BARRIERS), CompilerSetting(DEFAULT))
GPU = (
    CompilerSetting(DEFAULT),
    CompilerSetting("latency hiding on", {HIDING: True}),
    CompilerSetting("latency hiding off", {HIDING: False}),
    CompilerSetting("latency hiding on, slop factor 50", {HIDING: True, SLOP: 50}),
)
OTHER = (CompilerSetting(DEFAULT),)


def settings_of(platform: str) -> tuple[CompilerSetting, ...]:
    """Return the settings of a platform. The requirements apply to the first setting.

    By default, XLA removes barriers on CPU, but keeps them on GPU.
    """
    return {"cpu": CPU, "gpu": GPU, "cuda": GPU, "rocm": GPU}.get(platform, OTHER)
