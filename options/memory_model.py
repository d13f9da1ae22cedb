"""The names of the memory models."""

from __future__ import annotations

ORDER, XLA = "order", "xla"
"""The model in program order, and the model of XLA:CPU, which includes its fusion and schedule."""
MODELS = (ORDER, XLA)
