"""Verification of a step: dominance, the invariants of copies and tokens, and the reads of planned copies."""
