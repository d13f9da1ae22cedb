"""Restore inlined calls: record the call from which each inlined operation comes, and turn these operations back into
calls. Also mark the custom calls that may run twice."""
