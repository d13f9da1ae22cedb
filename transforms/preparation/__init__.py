"""Preparation of modules for the passes and the search: flattening, outlining of nested steps, values that may be moved
to the host, repeatable custom calls, and memory timelines."""
