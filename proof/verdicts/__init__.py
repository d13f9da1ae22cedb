"""The verdict of a proof, and the difference that explains why a proof failed."""
