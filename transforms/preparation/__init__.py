"""Prepare modules for the passes and the search: flatten them, and compute memory timelines."""
