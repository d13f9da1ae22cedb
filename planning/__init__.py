"""Which operations run again, when, and what that costs: plain data and numbers, without IR."""
