"""The stages of a rewrite in their order, and the passes that run all of them, `recompute` and `recompute-plan`."""
