"""Analyses of what may be recomputed: the decision per segment, legality of copies, plans from marks, and loop cuts."""
