"""Make the choices that precede the plan of a step. Each is a local optimum, which does not depend on the peak."""
