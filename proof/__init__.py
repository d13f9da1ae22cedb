"""The proof that two programs compute bit-identical results. The docstring of `prove.py` lists its rules.

The package shares no facts with the passes. The functions exported here declare that operations of other dialects are
pure; docs/foreign_dialects.md shows how to use them.
"""

from .operations.declarations import register_pure, registrations_undone

__all__ = ["register_pure", "registrations_undone"]
