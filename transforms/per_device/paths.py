"""Where operations per device stand: JAX begins their paths anew inside of a `shard_map`.

"layer0/sin"  in  "jit(loss)/jvp()/shard_map"      is      "jit(loss)/jvp()/layer0/sin"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import LocationAttr, NameLoc, StringAttr
from xdsl.ir import Attribute, Operation

from ...analysis.step.jax_paths import path_of, split_path
from ...support.walk import every_operation


def continue_paths(around: Operation, inside: Iterable[Operation]) -> None:
    """Write whole paths on what stands inside, at every depth."""
    prefix = split_path(path_of(around.location))[:-1]
    if not prefix:
        return
    for op in inside:
        for one in every_operation(op):
            one.location = _continued(one.location, "/".join(prefix), prefix[0])


def _continued(location: LocationAttr, prefix: str, start: str) -> LocationAttr:
    kinds, inner = list[StringAttr](), cast(Attribute, location)
    while isinstance(inner, NameLoc) and inner.desc.data.endswith(":"):
        kinds.append(inner.desc)
        inner = inner.location
    if not isinstance(inner, NameLoc) or not (name := inner.desc.data) or name == start or name.startswith(f"{start}/"):
        return location
    continued = NameLoc(StringAttr(f"{prefix}/{name}"), inner.location)
    for kind in reversed(kinds):
        continued = NameLoc(kind, continued)
    return continued
