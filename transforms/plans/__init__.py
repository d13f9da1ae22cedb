"""Application of plans: the insertion of copies into the program, and notes on its operations."""
