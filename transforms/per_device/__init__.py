"""Rewrites for `shard_map`: the forward and the backward body of a step become one function, and are split
afterwards."""
