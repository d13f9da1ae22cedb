"""Utilities that are independent of individual MLIR operations: errors, remarks, locations, timing, byte units and
caching."""
