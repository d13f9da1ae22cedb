"""The inner loops of the local search, in the subset of Python that numba compiles: one flat integer array, no objects.

The same functions run as plain Python, on a list, where numba is not installed: the same plans, more slowly. `board.py`
defines the layout of the array, and the accessors of its parts.
"""
