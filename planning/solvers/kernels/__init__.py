"""The inner loops of the local search, in the subset of Python that numba compiles: flat integer arrays, no objects.

The same functions run as plain Python, on lists, where numba is not installed: the same plans, more slowly.
"""
