"""Options of a rewrite as frozen dataclasses, which are parsed and validated once and passed whole."""
