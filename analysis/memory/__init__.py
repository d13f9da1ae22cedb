"""Bytes over time: timelines of any order, schedules, peaks, and a memory model of XLA:CPU."""
