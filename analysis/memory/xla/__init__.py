"""A model of XLA:CPU: what it fuses, in which order it runs, and where it puts values; `memory.py` counts the bytes."""
