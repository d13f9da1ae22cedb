"""A model of XLA:CPU: fusion, schedule and buffer assignment; `memory.py` counts the bytes."""
