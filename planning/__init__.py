"""Plan which operations are recomputed, where, and at which cost: plain data and integers, without IR."""
