"""Analyses of recomputation: the decision per segment, legality of copies, plans from marks, and loop cuts."""
