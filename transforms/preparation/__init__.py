"""Preparation of modules for the passes and the search: flattening, outlining of nested steps, values on offer for
moves to the host, repeatable custom calls, and memory timelines."""
