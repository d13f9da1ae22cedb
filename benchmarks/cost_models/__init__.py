"""Benchmarks that compare the models of cost and memory with measured time and with the memory that XLA allocates."""
