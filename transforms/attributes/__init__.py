"""Functions that the passes share to write the attributes of marks, names, checkpoints and switches."""
