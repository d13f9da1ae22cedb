"""Import all modules with steps, which fills the table `CASES`."""

from recompute.benchmarks.consumers import branches_and_loops, callbacks, number_types, program_structure, sharded_steps
from recompute.benchmarks.consumers.case import CASES

__all__ = ["CASES", "branches_and_loops", "callbacks", "number_types", "program_structure", "sharded_steps"]
