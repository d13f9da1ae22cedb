"""Search for the operations to recompute, using attempts, forecasts, vetoes, and candidate plans for budgets. This
package only chooses; `transforms/` rewrites, and `rewriting/` runs both."""
