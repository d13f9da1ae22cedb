"""A benchmark that measures how rounding in XLA:CPU differs between the forms of a step."""
