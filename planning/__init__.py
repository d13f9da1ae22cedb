"""Choose the operations to recompute, and the place and cost of each copy. Planners work on integers, not on IR."""
