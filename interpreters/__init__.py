"""Execution of modules, and proofs of equivalence. For operations of other dialects: docs/foreign_dialects.md."""

from .user_kernels import register_kernel, register_pure, registrations_undone

__all__ = ["register_kernel", "register_pure", "registrations_undone"]
