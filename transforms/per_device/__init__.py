"""Steps that run on each device (`shard_map`): both passes as one function, and split again."""
