"""Rewrite `shard_map` steps: join the forward and backward body into one function, and split it afterwards."""
