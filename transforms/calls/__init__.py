"""Restore inlined calls: the origins of inlined operations, and the functions of the output. Also mark repeatable
custom calls."""
