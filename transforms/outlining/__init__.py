"""Outline nested steps as functions, so that passes apply to them as to any other step."""
