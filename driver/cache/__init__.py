"""The entries of the disk cache: their keys, and the stored form of a rewrite."""
