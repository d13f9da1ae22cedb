"""Training steps written independently of the passes. They measure the passes on code that the authors of the passes
had not seen."""
