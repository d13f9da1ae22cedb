"""Verify a step: dominance, the invariants of copies and tokens, and that it reads the copies of its plan."""
