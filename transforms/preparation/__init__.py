"""Preparation of modules for the passes and the search: flattening, values on offer for moves to the host, and memory
timelines."""
