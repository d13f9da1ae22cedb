"""Application of plans: inserting copies into the program and writing notes on its operations."""
