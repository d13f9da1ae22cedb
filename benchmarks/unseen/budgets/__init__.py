"""Steps for the measurement of budgets. They have diverse structures and 5 to 100 MB of temporaries each, and were
written before any of them was planned."""
