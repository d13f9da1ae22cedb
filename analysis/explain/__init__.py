"""Explanation for users of the values that a step saves for its backward pass: the data behind `-t explain`."""
