"""Reports on compiled graphs, and the warning for graphs that are left to PyTorch."""
