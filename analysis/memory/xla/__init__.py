"""The memory model of XLA:CPU: its rewrites, fusion, schedule and buffer assignment. `memory.py` counts the bytes."""
