"""Compiled steps: their measured memory, the choice between them, and the search for a budget by compiling."""
