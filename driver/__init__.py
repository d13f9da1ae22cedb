"""Rewrites of whole modules, from parsing to the proof; the Python API; queries on memory; the disk cache."""
