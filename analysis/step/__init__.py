"""A function that holds a training step, read: its order, phases, scopes, marks, storages, and the graph of it all."""
