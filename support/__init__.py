"""Utilities that know nothing of individual MLIR operations: diagnostics, locations, timing, byte units, caching."""
