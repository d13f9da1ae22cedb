"""What a step saves for its backward pass and why, for people: the data behind `-t explain`."""
