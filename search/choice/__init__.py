"""Choose one attempt at a step, or leave the step unchanged. `choose.py` is the entry point."""
