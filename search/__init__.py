"""Search for the operations to recompute: attempts, forecasts, vetoes, and candidates of budgets. It chooses;
`transforms/` rewrites, and `rewriting/` runs both."""
