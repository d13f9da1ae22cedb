"""Run the stages of a rewrite. This package contains the passes `recompute` and `recompute-plan`."""
