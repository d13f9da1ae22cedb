"""Verify a step: dominance, the invariants of copies and tokens, and the operands that must read planned copies."""
