"""Shardy for xDSL: the distribution of a program's values over a device mesh.

| module | content |
|---|---|
| `shardings.py` | the attributes of meshes and shardings, as text |
| `axes.py` | mesh axes, meshes and shardings as data |
| `sharding_text.py` | parsers of the text of meshes and shardings |
| `sharding_lookup.py` | the sharding of a value, and the mesh of a sharding |
| `sharding_checks.py` | the constraints on shardings and lists of axes |
| `sharding_rules.py` | correspondence between the dimensions of operands and results |
| `propagation_edges.py` | records of propagation steps |
| `attached.py` | Shardy's attributes on functions and on operations of other dialects |
| `sharding_ops.py` | meshes, constraints, groups, barriers, edges, constants |
| `computations.py` | operations with a region: `manual_computation`, `named_computation` |
| `collectives.py` | operations that change how a value is distributed |

Assembly, properties and constraints follow Shardy's `ops.td`, `attrs.td` and `verifiers.cc`.
"""

from xdsl.ir import Dialect

from .collectives import COLLECTIVE_ATTRIBUTES, COLLECTIVES
from .computations import COMPUTATIONS
from .propagation_edges import PropagationEdgesAttr
from .sharding_ops import ANNOTATIONS
from .sharding_rules import OpShardingRuleAttr
from .shardings import SHARDINGS

SDY = Dialect(
    "sdy",
    [*ANNOTATIONS, *COMPUTATIONS, *COLLECTIVES],
    [*SHARDINGS, OpShardingRuleAttr, PropagationEdgesAttr, *COLLECTIVE_ATTRIBUTES],
)
