"""Utilities without knowledge of MLIR operations: diagnostics, locations, walking, timing, byte counts."""
