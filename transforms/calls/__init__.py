"""Outlining of inlined calls: where each inlined operation comes from, and the functions of the output."""
