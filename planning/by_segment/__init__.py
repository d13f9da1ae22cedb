"""The planner that recomputes segments: from what is to be recomputed to a plan, by rules, without a search."""
