"""The held-back half of the steps. It was measured once, at the end, and is not changed since its results are known."""
