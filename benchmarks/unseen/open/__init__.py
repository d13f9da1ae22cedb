"""The half that may be looked at while the passes are written."""
