"""Steps for budgets, of diverse structure with 5 to 100 MB of temporaries each, written before any of them was
planned."""
