"""The half that is measured once, at the end, and never changed after its results are known."""
