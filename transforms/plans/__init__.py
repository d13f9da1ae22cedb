"""Plans carried out: copies into the program, notes onto its operations."""
