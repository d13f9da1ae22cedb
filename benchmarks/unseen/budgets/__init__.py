"""Steps for the measurement of budgets. The steps have diverse structures, and need 5 to 100 MB of temporaries each.
All steps were written before any of them was planned."""
