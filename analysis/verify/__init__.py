"""What must hold of a step: dominance, the invariants of copies and tokens, and that it reads what was planned."""
