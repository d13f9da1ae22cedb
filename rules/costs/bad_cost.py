"""What says that a cost is none."""


class BadCost(ValueError):
    """An unknown cost, or a file of costs or of a device that cannot be read; the words name the culprit."""
