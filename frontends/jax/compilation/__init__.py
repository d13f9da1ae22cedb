"""Compiled steps: their measured memory, the choice among them, and the budget search that compiles candidates."""
