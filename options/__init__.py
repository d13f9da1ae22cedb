"""Options of a rewrite as frozen dataclasses. They are parsed and validated once, and then passed whole."""
