"""The names of the memory models."""

from __future__ import annotations

ORDER, XLA = "order", "xla"
"""The model in program order, and the model of XLA:CPU with its fusion and its schedule."""
MODELS = (ORDER, XLA)
