"""Apply plans: write copies into the program and notes onto its operations."""
