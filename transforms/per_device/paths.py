"""Complete the paths of per-device operations: JAX restarts paths inside of a `shard_map`.

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
    """Write full paths on the operations `inside`, at every depth."""
    prefix = split_path(path_of(around.location))[:-1]
    if not prefix:
        return
    for op in inside:
        for inner in every_operation(op):
            inner.location = _continued(inner.location, "/".join(prefix), prefix[0])


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
