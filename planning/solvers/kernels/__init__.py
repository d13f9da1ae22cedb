"""The search's inner loops, in the part of Python that numba compiles: flat arrays of integers, no objects.

The same functions run as plain Python, on lists, where numba is not installed: the same plans, more slowly.
"""
