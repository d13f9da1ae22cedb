"""Search under a memory budget: in program order with proven bounds, or by the model of XLA:CPU."""
