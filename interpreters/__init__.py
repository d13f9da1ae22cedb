"""An interpreter that runs modules with numpy and measures their memory.

The functions exported here register kernels for operations of other dialects; docs/foreign_dialects.md shows how to
use them.
"""

from .user_kernels import register_kernel, registrations_undone

__all__ = ["register_kernel", "registrations_undone"]
