"""The open half of the steps, which may be looked at while the passes are written."""
