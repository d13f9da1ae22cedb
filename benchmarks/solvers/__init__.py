"""Benchmarks of the planner and its solvers on graphs, without a framework."""
