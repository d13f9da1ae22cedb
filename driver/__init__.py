"""Rewrites of whole modules, from parsing to the proof, the Python API, memory queries, and keys of the disk cache."""
