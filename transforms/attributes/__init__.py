"""Write the attributes of marks, names, checkpoints and switches. The passes share these functions."""
