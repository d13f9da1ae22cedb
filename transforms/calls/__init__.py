"""Outlining of inlined calls: the origin of each inlined operation, and the functions of the output."""
