"""The costs of a compiled step, as XLA reports them."""

from __future__ import annotations

from typing import Any


def temporary_bytes(compiled: Any) -> int:
    """Return the bytes of temporaries of a compiled step."""
    return compiled.memory_analysis().temp_size_in_bytes


def aliased_bytes(compiled: Any) -> int:
    """Return the bytes of results that share the memory of donated arguments."""
    return compiled.memory_analysis().alias_size_in_bytes


def flops(compiled: Any) -> float:
    """Return the FLOPs of a compiled step. Each loop body counts as a single iteration."""
    return float(compiled.cost_analysis()["flops"])


def temporaries_and_flops(compiled: Any) -> tuple[int, float]:
    """Return the bytes of temporaries and the FLOPs of a compiled step. Each loop body counts as a single iteration in
    the FLOPs."""
    return temporary_bytes(compiled), flops(compiled)
