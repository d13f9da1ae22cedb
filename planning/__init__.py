"""Plan which operations run again, where, and at what cost: plain data and integers, without IR."""
