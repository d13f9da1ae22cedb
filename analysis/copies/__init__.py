"""Analyses of recomputation: legality of copies, plans from marks, and decisions and loop cuts as data."""
