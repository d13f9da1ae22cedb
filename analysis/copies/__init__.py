"""Decide what to recompute: decisions per segment, plans from marks, loop cuts, and the legality of copies."""
