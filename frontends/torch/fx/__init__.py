"""Import of joint graphs from FX to xDSL, and export back to FX."""
