"""The rule-based planner of segments, which derives a plan from the values to recompute without a search."""
