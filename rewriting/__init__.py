"""The stages of a rewrite, and the passes `recompute` and `recompute-plan`, which run all of them."""
