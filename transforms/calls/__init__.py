"""Restore inlined calls: record the call that each inlined operation comes from, and turn these operations into calls
again. Also mark the custom calls that may run twice."""
