"""Where operations per device stand: JAX begins their paths anew inside of a `shard_map`.

"layer0/sin"  in  "jit(loss)/jvp()/shard_map"      is      "jit(loss)/jvp()/layer0/sin"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import LocationAttr, NameLoc, StringAttr
from xdsl.ir import Attribute, Operation

from ...analysis.step.jax_paths import path_of, split_path
from ...dialects.every import every_operation


def continue_paths(around: Operation, inside: Iterable[Operation]) -> None:
    """Write whole paths on what stands inside, at every depth."""
    prefix = split_path(path_of(around.location))[:-1]
    if not prefix:
        return
    for op in inside:
        for one in every_operation(op):
            one.location = _continued(one.location, "/".join(prefix), prefix[0])


def _continued(location: Attribute, prefix: str, start: str) -> LocationAttr:
    if not isinstance(location, NameLoc):
        return cast(LocationAttr, location)
    name = location.desc.data
    if name.endswith(":"):
        return NameLoc(location.desc, _continued(location.location, prefix, start))
    if not name or name == start or name.startswith(f"{start}/"):
        return location
    return NameLoc(StringAttr(f"{prefix}/{name}"), location.location)
