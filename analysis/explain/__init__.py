"""Explanation of the values that a step saves for its backward pass: the data that `-t explain` prints."""
