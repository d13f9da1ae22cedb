"""Training steps written independently of the passes, to measure the passes on code that their authors had not seen."""
