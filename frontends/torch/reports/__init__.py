"""Reports on compiled graphs, and the warning about graphs that are left to PyTorch."""
