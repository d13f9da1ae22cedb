"""The Python API, and the parts of it that the tools and frontends share: reading steps, pipelines, verified and proved
rewrites, answers on budgets, memory queries, and the stored form of results."""
