"""Translate programs to terms by value numbering. `value_numbering.py` is the entry point."""
