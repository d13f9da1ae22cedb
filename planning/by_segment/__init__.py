"""The rule-based planner of segments: from target values to a plan, without a search."""
