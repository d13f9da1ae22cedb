"""Preparation of modules for the passes: outlining of nested steps, repeatable custom calls, and memory timelines."""
