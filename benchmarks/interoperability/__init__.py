"""Benchmarks of programs of other tools, and of our output in other compilers."""
