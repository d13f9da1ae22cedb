"""Make the choices that precede the plan of a step and do not depend on its peak: loop cuts, saved carries, the values
that segments with budgets save, and the values that may move to the host."""
