"""Numpy execution of modules, and the proof that two programs compute the same results.

The functions exported here register operations of other dialects; docs/foreign_dialects.md shows how to use them.
"""

from .user_kernels import register_kernel, register_pure, registrations_undone

__all__ = ["register_kernel", "register_pure", "registrations_undone"]
