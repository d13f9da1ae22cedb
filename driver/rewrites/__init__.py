"""Rewrite a module with a proof that the result is equal. `proved_rewrite.py` is the entry point."""
