"""Analyses of recomputation: the decision for each segment, the legality of copies, plans from marks, and loop cuts."""
