"""Run passes on one module, reuse the output of earlier runs, and write reports as targets."""
