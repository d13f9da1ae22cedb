"""A corpus of typical training scripts, to test robustness. `__main__.py` runs them."""
