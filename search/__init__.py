"""Make the choices of a rewrite: loop cuts, decisions on segments, attempts, vetoes, and candidate plans for budgets.
The folder `transforms/` applies the choices, and `rewriting/` calls the search and the transforms."""
