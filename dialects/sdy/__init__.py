"""Shardy for xDSL: how the values of a program are distributed over the devices of a mesh.

| module | content |
|---|---|
| `shardings.py` | the attributes of meshes and shardings, as text |
| `axes.py` | axes of meshes as data: parsed shardings and the constraints on them |
| `attached.py` | shardings among the attributes of functions and of operations of other dialects |
| `operations.py` | meshes, constraints, groups, barriers, edges, constants |
| `computations.py` | operations with a region: `manual_computation`, `named_computation` |
| `collectives.py` | operations that change how a value is distributed |

Assembly, properties and constraints are those of Shardy's `ops.td`, `attrs.td` and `verifiers.cc`.
"""

from xdsl.ir import Dialect

from .collectives import COLLECTIVE_ATTRIBUTES, COLLECTIVES
from .computations import COMPUTATIONS
from .operations import ANNOTATIONS
from .shardings import SHARDINGS

SDY = Dialect("sdy", [*ANNOTATIONS, *COMPUTATIONS, *COLLECTIVES], [*SHARDINGS, *COLLECTIVE_ATTRIBUTES])
