"""Compiled steps: their measured memory, the choice among them, and the search for a budget, which compiles
candidates."""
