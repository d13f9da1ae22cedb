"""The Python API, and the code that it shares with the tools and frontends: reading steps, pipelines, verified and
proved rewrites, answers on budgets, memory queries, and the stored form of results."""
