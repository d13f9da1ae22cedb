"""Bytes over time: the timeline in any order, schedules, peaks, and a model of what XLA makes of a step."""
