"""Execution of steps in program order, as with the backend `aot_eager`, and their peaks in that order."""
