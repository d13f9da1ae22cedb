"""The modes of recompute-plan: their arguments, files, and output."""
