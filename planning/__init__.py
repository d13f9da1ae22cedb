"""Choose the operations to recompute and the positions of their copies. Planners work on integers, not on IR."""
