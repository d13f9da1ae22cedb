"""Describe a run of passes: IR dumps, timings, statistics, gains, and reproducers."""
