"""Preparation of modules for the passes: flattening, outlining of nested steps, repeatable custom calls, and memory
timelines."""
