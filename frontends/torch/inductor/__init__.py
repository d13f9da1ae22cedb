"""Steps that Inductor compiles: candidates are compiled and measured until one is within the budget."""
