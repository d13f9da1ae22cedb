"""Answer queries about the steps of a module: their peaks, and what a rewrite recomputes and saves."""
