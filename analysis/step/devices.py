"""The number of devices over which the compiler divides the arrays of a step."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block

from ...dialects.sdy.sharding_lookup import mesh_of, sharding_of
from .order import functions_of

PARTITIONS = "mhlo.num_partitions"
"""The attribute of a module that gives XLA the number of devices. JAX also writes it for one device."""


def partitions_of(module: ModuleOp) -> int:
    """Return the number of devices over which JAX divides the step."""
    stated = module.attributes.get(PARTITIONS)
    return stated.value.data if isinstance(stated, IntegerAttr) else 1


def devices_of(module: ModuleOp) -> int:
    """Return the number of devices that the module states, or else the size of the largest mesh over which an argument
    of a function is sharded. Shardings inside `sdy.manual_computation` are ignored, because its values are local to one
    device.
    """
    blocks = [function.body.blocks[0] for function in functions_of(module)]
    return max([partitions_of(module), *(size for block in blocks for size in _mesh_sizes(block))])


def _mesh_sizes(block: Block) -> list[int]:
    """Return, for each sharded argument of the block, the number of devices in its mesh."""
    shardings = [sharding for argument in block.args if (sharding := sharding_of(argument)) is not None]
    op = block.parent_op()
    assert op is not None, "the block belongs to a function"
    meshes = [mesh_of(op, sharding.mesh) for sharding in shardings if any(axes.axes for axes in sharding.dimensions)]
    return [prod(mesh.sizes.values()) for mesh in meshes if mesh is not None]
