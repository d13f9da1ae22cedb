"""Calls: the origin of each inlined operation, the functions of the output, and custom calls that may run twice."""
