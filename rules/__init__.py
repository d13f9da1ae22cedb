"""Facts about operations. A foreign dialect declares its own: docs/foreign_dialects.md."""

from .facts import (
    Carry,
    RegionStorage,
    View,
    collective,
    communication,
    constant,
    forwards,
    impure,
    pure,
    pure_if_body_is,
    random,
    reads_memory,
    view,
    writes_memory,
)
from .registry import register, register_type, registrations_undone

__all__ = [
    "Carry",
    "RegionStorage",
    "View",
    "collective",
    "communication",
    "constant",
    "forwards",
    "impure",
    "pure",
    "pure_if_body_is",
    "random",
    "reads_memory",
    "register",
    "register_type",
    "registrations_undone",
    "view",
    "writes_memory",
]
