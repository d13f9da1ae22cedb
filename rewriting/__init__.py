"""Run the stages of a rewrite, with the passes `recompute` and `recompute-plan`."""
