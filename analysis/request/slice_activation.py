"""Requests to shard the saved values of a segment: `recompute_slice_activation`, as an attribute or in the name of a
scope.

Examples:
    %s = stablehlo.sine %a {recompute.segment = "b", recompute.recompute_slice_activation = true}
    %s = stablehlo.sine %a loc("jit(f)/jvp(recompute:b@3+recompute_slice_activation)/sin")
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from ...dialects.names import Names
from ..step.jax_paths import parse_path, path_of
from .scope_names import parse_scope

_SWITCH = Names.SLICE_ACTIVATION.removeprefix(Names.PREFIX)


def shards_saved_values(op: Operation) -> bool:
    """Return whether an attribute of the operation, or a scope in its location, requests that saved values be
    sharded."""
    switch = op.attributes.get(Names.SLICE_ACTIVATION)
    if isinstance(switch, IntegerAttr) and switch.value.data:
        return True
    path = path_of(op.location)
    return _SWITCH in path and _scope_requests(path)


@lru_cache(maxsize=1_000)
def _scope_requests(path: str) -> bool:
    try:
        calls = [parse_scope(part) for part in parse_path(path).path]
    except ValueError:
        # A scope with an unknown switch, which `recompute-take-scopes` refuses, requests nothing.
        return False
    return any(call is not None and call.switches.recompute_slice_activation for call in calls)
