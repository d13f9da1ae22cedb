"""Benchmarks with programs from other tools, and with our output in other compilers."""
