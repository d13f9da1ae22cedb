"""A corpus of training scripts as people write them, for robustness: see `__main__.py` for the runner."""
