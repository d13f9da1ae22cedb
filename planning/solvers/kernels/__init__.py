"""The inner loops of the local search, in the subset of Python that numba compiles. Their only data structure is one
flat array of integers.

Where numba is not installed, the same functions run as plain Python, on a list. The plans are the same, but the search
is slower. `board.py` defines the layout of the array, and the accessors of its parts.
"""
