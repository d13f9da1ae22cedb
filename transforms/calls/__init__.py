"""Outline inlined calls again: origins of inlined operations, and the functions of the output."""
