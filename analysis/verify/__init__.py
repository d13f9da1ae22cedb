"""Verification of a step: dominance, the invariants of copies and tokens, and that operations read the planned
copies."""
