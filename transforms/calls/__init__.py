"""Calls that were inlined to decide, and come back: where operations come from, and how functions are written again."""
