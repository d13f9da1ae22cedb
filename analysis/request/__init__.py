"""Resolve the user's options (`options/selection.py`) to operations, values and segments of a step."""
