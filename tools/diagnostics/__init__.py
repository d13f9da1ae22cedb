"""Print errors and remarks, and compare them with the ones that an input expects."""
