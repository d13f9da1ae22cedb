"""Search for rewrites within a memory budget: in program order with proven bounds, or under the XLA:CPU model."""
