"""Collect candidate plans for budgets, with their forecasts. `pool.py` is the entry point."""
