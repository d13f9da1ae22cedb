"""Analyses of a training step: program order, phases, scopes, marks, storages, loops, and its graph for planners."""
