"""The proof that two programs compute bit-identical results: `prove` of `prove.py` states its rules.

The package shares no facts with the passes. The functions exported here declare operations of other dialects pure;
docs/foreign_dialects.md shows how to use them.
"""

from .declarations import register_pure, registrations_undone

__all__ = ["register_pure", "registrations_undone"]
