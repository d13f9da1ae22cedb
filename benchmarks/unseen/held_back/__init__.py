"""The held-back half of the steps. It was measured once, at the end, and must not be changed."""
