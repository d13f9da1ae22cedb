"""Prepare modules for the passes and the search: flatten them, list the values that may be moved to the host, and
compute memory timelines."""
