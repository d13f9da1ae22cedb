"""The path from a call of a step to the variant that runs: lowering by JAX, rewrite, caches, and the choice."""
