"""Restore inlined calls: record the call from which each inlined operation comes, and turn these operations back into
calls.

Two more modules mark the custom calls that may run twice, and keep operations next to calls of reserved functions.
"""
