"""The error for an invalid cost model."""


class BadCost(ValueError):
    """An unknown cost, or a file of costs or of a device that cannot be read; the message names the cause."""
