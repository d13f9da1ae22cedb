"""Benchmarks of the models of cost and memory, compared with measured time and with the allocation of XLA."""
