"""Analyses for recomputation: the legality of copies, plans made from marks, and records of decisions and loop cuts."""
