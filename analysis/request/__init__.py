"""What a user may ask for, and which operations and values that is; `selection.py` lists the ways to say it."""
