"""The held-back half of the steps: measured once, at the end, and never changed after its results are known."""
