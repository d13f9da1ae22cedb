"""Parts that benchmarks share: command lines, Markdown tables, child processes, costs of compiled steps, XLA flags."""
