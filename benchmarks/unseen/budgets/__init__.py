"""Steps for budgets, by a hand that had not read the planner: `python -m recompute.benchmarks.unseen.budgets.table`."""
