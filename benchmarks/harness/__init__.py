"""Parts that benchmarks share: command lines, Markdown tables, child processes, compiled costs, and XLA flags."""
