"""Import joint graphs from FX to xDSL, and export them back to FX."""
