"""What is recomputed: the decision for each segment, the plan of marks, and what may not run twice."""
