"""Compiled steps: their measured memory, the choice among them, and the search under a budget by compilation."""
