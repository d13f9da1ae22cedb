"""A benchmark that measures how rounding in XLA:CPU differs between the variants of a step."""
