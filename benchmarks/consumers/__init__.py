"""What `recompute-opt` writes of unusual JAX steps, given to XLA, to the proof and to numpy."""
