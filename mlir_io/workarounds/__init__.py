"""Workarounds for bugs in xDSL 0.73 and 0.74. `install()` applies them.

Each workaround is applied only if a check at run time shows that the bug is present, and changes only the behaviour
that is wrong. docs/upstream.md describes the bugs for xDSL's developers.
"""

from __future__ import annotations

from .arith_on_tensors import repair_arith
from .dense_constants import repair_dense
from .floats import repair_floats
from .location_forms import repair_locations
from .reshape import repair_reshape
from .symbols import repair_symbols


def install() -> None:
    """Apply the workarounds to xDSL, each only if its bug is present. Repeated calls do nothing."""
    repair_floats()
    repair_dense()
    repair_symbols()
    repair_reshape()
    repair_arith()
    repair_locations()
