"""Check the output of `recompute-opt` for unusual JAX steps with XLA, the proof, and numpy."""
