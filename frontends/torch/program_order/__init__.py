"""Execution of steps in program order, as with the backend `aot_eager`, and peaks in that order."""
