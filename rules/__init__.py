"""Facts about operations: their effects, views, costs and storage.

The functions exported here declare facts about the operations of other dialects; docs/foreign_dialects.md shows how to
use them.
"""

from .facts import (
    Carry,
    RegionStorage,
    View,
    cast,
    collective,
    communication,
    constant,
    forwards,
    impure,
    product,
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
    "cast",
    "collective",
    "communication",
    "constant",
    "forwards",
    "impure",
    "product",
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
