"""Budgets under Inductor: candidates are compiled and measured until the peak of one is within the budget."""
