"""Resolve the options of a user (`options/selection.py`) to operations, values and segments of a step."""
