"""Facts about operations: their effects, views, costs, storage and fusion.

The functions that this package exports declare facts about the operations of other dialects; docs/foreign_dialects.md
explains how to use them.
"""

from .facts import (
    Carry,
    FusionRole,
    RegionStorage,
    View,
    cast,
    collective,
    communication,
    constant,
    forwards,
    fused,
    impure,
    in_kernel_library,
    overwrites_operand,
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
    "FusionRole",
    "RegionStorage",
    "View",
    "cast",
    "collective",
    "communication",
    "constant",
    "forwards",
    "fused",
    "impure",
    "in_kernel_library",
    "overwrites_operand",
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
