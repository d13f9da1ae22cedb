"""Training steps as the users of each framework write them, and what is measured of them beside remat."""
