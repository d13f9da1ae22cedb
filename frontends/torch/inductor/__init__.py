"""Meet budgets under Inductor: compile and measure candidates until the peak of one is within the budget."""
