"""Report on a run of passes with IR dumps, timings, statistics, gains, and reproducers."""
