"""The rule-based segment planner. It derives a plan from the values to recompute, without a search."""
