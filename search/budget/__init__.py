"""Search for rewrites within a memory budget: in program order with proven bounds, or under the model of XLA:CPU."""
