"""The XLA:CPU model, a memory model: rewrites, fusion, schedule and buffer assignment; `memory.py` counts the bytes."""
