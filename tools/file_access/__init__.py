"""Read and write files, and load the Python files that users supply."""
