"""Training steps written independently of the passes, to measure them on code that their authors had not seen."""
