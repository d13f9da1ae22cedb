"""Measure the peak memory of a step with the records of PyTorch's allocators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def allocator_peak(run: Callable[[], object], device: str) -> int:
    """Return the peak of the bytes that `run` allocates, in addition to the bytes that were allocated before.

    The results of `run` are live until the measurement ends. On the CPU, the peak is computed from the events of
    PyTorch's allocator. They do not include memory that libraries request directly from the system.

    Raises `RuntimeError` on the CPU if a profiler is already active.
    """
    return _cuda_peak(run) if device == "cuda" else _cpu_peak(run)


def _cpu_peak(run: Callable[[], object]) -> int:
    # Use the legacy profiler, since Kineto writes its own lines to standard error.
    autograd: Any = torch.autograd
    bindings: Any = torch._C
    profiler = bindings._profiler
    config = autograd.ProfilerConfig(
        profiler.ProfilerState.CPU, False, True, False, False, False, profiler._ExperimentalConfig()
    )
    autograd._enable_profiler_legacy(config)
    try:
        run()
    finally:
        events = autograd._disable_profiler_legacy()
    live = peak = 0
    for event in (event for thread in events for event in thread if event.kind() == "memory_alloc"):
        live += event.cpu_memory_usage()
        peak = max(peak, live)
    return peak


def _cuda_peak(run: Callable[[], object]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
