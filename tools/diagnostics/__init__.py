"""Print errors and remarks, and compare them with the diagnostics that an input expects."""
