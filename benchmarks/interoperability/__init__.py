"""Benchmarks that read programs from other tools, or compile our output with other compilers."""
