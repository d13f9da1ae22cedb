"""The open half of the steps, which authors of the passes may read while they write the passes."""
