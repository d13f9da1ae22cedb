"""Utilities that are independent of individual MLIR operations: diagnostics, locations, timing, byte units, caching."""
