"""Compiled steps: their variants, their measured memory, and the budget search that compiles candidates."""
