"""The held-back half of the steps, which was measured once, at the end, and must not be changed."""
