"""Steps for budgets: 5 to 100 MB of temporaries each, unlike in structure, written before any of them was planned."""
