"""Join the forward and the backward body of a `shard_map` step in one function, and split the function after the
rewrite."""
