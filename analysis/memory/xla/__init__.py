"""A memory model of XLA:CPU: rewrites, fusion, schedule and buffer assignment; `memory.py` counts the bytes."""
