"""The names of the memory models."""

from __future__ import annotations

from ..support.suggestions import suggestion

ORDER, XLA = "order", "xla"
"""The model in program order, and the XLA:CPU model with its fusion and its schedule."""
MODELS = (ORDER, XLA)


def demand_memory_model(name: str) -> None:
    """Check the name of a memory model; "" is the default of the target. Raises `ValueError` for an unknown model."""
    if name not in ("", *MODELS):
        raise ValueError(f"unknown memory model '{name}'{suggestion(name, MODELS)}")
