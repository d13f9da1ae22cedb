"""Functions that write the attributes of marks, names, checkpoints and switches, for the passes above this folder."""
