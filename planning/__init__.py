"""Choose the operations to recompute and the positions of their copies. Planners read a graph of integer indices, not
IR."""
