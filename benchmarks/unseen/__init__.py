"""Training steps written apart from the passes, to measure them on what their authors have not seen."""
