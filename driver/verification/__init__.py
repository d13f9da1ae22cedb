"""Read and verify modules, and prove that a changed module computes the same results."""
