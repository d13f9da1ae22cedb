"""Symbol names that consumers of the program search for. Functions with these names keep their names and calls.

    %2 = call @xla.sdy.manual_computation_body.3(%1)   // The name makes XLA convert the call to sdy.manual_computation.

Passes that inline, rename or merge functions, and the proof, use this table.

`shmap_body`, which JAX emits with `jax_use_shardy_partitioner=False`, is not in this table. XLA up to 2025 did not
inline its calls under Shardy, but the XLA of jaxlib 0.10.2 does not look for this name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReservedName:
    """A reserved name.

    Attributes:
        part: A substring of the symbol name; consumers search for a substring, since suffixes make names unique.
        reader: What the consumer does with the function, as a clause for messages.
        source: The source code in which the consumer uses the name.
    """

    part: str
    reader: str
    source: str


RESERVED_NAMES: tuple[ReservedName, ...] = (
    ReservedName(
        "xla.sdy.manual_computation_body",
        "XLA's Shardy round trip turns the call into a manual computation",
        "openxla/xla: kManualComputationFuncName in xla/service/spmd/shardy/constants.h, read by "
        "sdy_round_trip/shard_map_import.cc, which aborts on GlobalToLocalShape without such a call",
    ),
    ReservedName(
        "xla.sdy.inlinable_manual_computation_body",
        "XLA inlines the call after partitioning",
        "openxla/xla: kInlineableManualComputationFuncName in xla/service/spmd/shardy/constants.h, read by "
        "shardy_xla_pass.cc, xla_sdy_export_named_computations and the compilers' CallInliner",
    ),
)


def reserved_name(name: str) -> ReservedName | None:
    """Return the table entry that a symbol name matches; None if there is none. `name`: the symbol name without the
    '@'."""
    return next((entry for entry in RESERVED_NAMES if entry.part in name), None)


def is_reserved(name: str) -> bool:
    """Return whether a consumer of the program searches for a function of this name. `name`: the symbol name without
    the '@'."""
    return reserved_name(name) is not None
