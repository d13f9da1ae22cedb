"""Tier 2 of the proof: rules for loops and conditionals. `numbering.py` lists them."""
