"""The proof's rules for loops, its second tier; `numbering.py` lists them."""
