"""Explain the values that a step saves for its backward pass, as data for `-t explain`."""
