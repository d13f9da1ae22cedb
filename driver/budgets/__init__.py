"""Answers about memory budgets: whether a step fits, its lower bound, and curves of memory and cost."""
