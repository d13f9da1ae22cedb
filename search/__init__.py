"""Search for the operations to recompute: candidates, forecasts, budgets. Transforms rewrite, and never choose."""
