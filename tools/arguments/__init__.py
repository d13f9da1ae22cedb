"""Parse and check the arguments of recompute-opt. The argument parser serves all tools."""
