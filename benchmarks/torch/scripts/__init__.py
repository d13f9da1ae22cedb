"""A corpus of typical training scripts for tests of robustness; `__main__.py` runs it."""
