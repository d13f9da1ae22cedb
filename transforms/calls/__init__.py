"""Restore inlined calls: record the call from which each inlined operation comes, and turn these operations back into
calls. A further module marks the custom calls that may run twice."""
