"""Check the output of `recompute-opt` for unusual JAX steps with XLA, with the proof and with numpy."""
