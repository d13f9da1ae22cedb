"""The path from a call of a step to its rewritten module: lowering by JAX, rewrite and caches."""
