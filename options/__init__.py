"""Options of a rewrite as frozen dataclasses: parsed and validated once, then passed whole."""
