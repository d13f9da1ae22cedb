"""Explain to a user which values a step saves for its backward pass, and why: the data behind `-t explain`."""
