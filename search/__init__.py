"""Make the choices of a rewrite: loop cuts, decisions on segments, attempts, vetoes, and candidate plans for budgets.
`transforms/` applies choices, and `rewriting/` calls both."""
