"""Convert `sdy.manual_computation` to the form of XLA's Shardy round-trip export, which can pass through HLO.

    %2 = sdy.manual_computation(%0) … {…}

becomes

    %1 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%0) {…xla.sdy.in_shardings…}
    %2 = func.call @xla.sdy.manual_computation_body(%1)
    %3 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%2) {…xla.sdy.out_shardings…}

The form is that of openxla/xla, `xla/service/spmd/shardy/sdy_round_trip` (see its `shard_map_export` test).
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import BoolAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from recompute.dialects.sdy.computations import ManualComputationOp
from recompute.dialects.sdy.sharding_ops import MeshOp
from recompute.dialects.stablehlo.custom_call import CustomCallOp

FRONTEND_ATTRIBUTES = "mhlo.frontend_attributes"
BODY, INLINABLE = "xla.sdy.manual_computation_body", "xla.sdy.inlinable_manual_computation_body"


def round_trip(module: ModuleOp, stay: bool = False) -> ModuleOp:
    """Return a copy of the module in the form of the round-trip export.

    The copy has no shardings of the step's arguments and results, since XLA infers them from the manual computations.

    `stay`: whether to mark the calls so that they are not inlined, as XLA has done since 2025.
    """
    module = module.clone()
    meshes = [op for op in module.ops if isinstance(op, MeshOp)]
    written = ", ".join(f"{mesh.sym_name.data} = {mesh.mesh}" for mesh in meshes)
    module.attributes[FRONTEND_ATTRIBUTES] = DictionaryAttr({"xla.sdy.meshes": StringAttr(f"{{{written}}}")})
    for function in [op for op in module.ops if isinstance(op, FuncOp)]:
        for name in ("arg_attrs", "res_attrs"):
            function.properties.pop(name, None)
    computations = [op for op in module.walk() if isinstance(op, ManualComputationOp)]
    for number, op in enumerate(computations):
        _outline(module, op, f"{BODY}_{number}" if number else BODY, stay)
    for mesh in meshes:
        mesh.detach()
        mesh.erase()
    return module


def _outline(module: ModuleOp, op: ManualComputationOp, name: str, stay: bool) -> None:
    axes = str(op.manual_axes)
    region = op.detach_region(op.body)
    block = region.block
    end = block.last_op
    assert end is not None, "a manual computation ends with a return"
    returned = list(end.operands)
    types = FunctionType.from_lists(list(block.arg_types), [value.type for value in returned])
    block.insert_op_before(last := ReturnOp(*returned), end)
    last.location = end.location
    end.detach()
    end.erase()
    function = FuncOp(name, types, region, StringAttr("private"))
    function.location = op.location
    module.body.block.add_op(function)
    inner, outer = list(types.inputs.data), list(op.result_types)
    local = list(op.inputs)
    new_ops = list[Any]()
    if inner:
        new_ops.append(_shape("GlobalToLocalShape", local, inner, {"in_shardings": op.in_shardings}, axes))
        local = list(new_ops[-1].results)
    new_ops.append(call := CallOp(name, local, list(types.outputs.data)))
    if stay:
        call.attributes[FRONTEND_ATTRIBUTES] = DictionaryAttr({"inlineable": StringAttr("false")})
    results = list(call.results)
    if outer:
        new_ops.append(_shape("LocalToGlobalShape", results, outer, {"out_shardings": op.out_shardings}, axes))
        results = list(new_ops[-1].results)
    for entry in new_ops:
        entry.location = op.location
    block = op.parent
    assert block is not None, "the operation is part of the module"
    block.insert_ops_before(new_ops, op)
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
        new.name_hint = old.name_hint
    op.detach()
    op.erase()


def _shape(target: str, operands: Any, types: Any, shardings: dict[str, Any], axes: str) -> CustomCallOp:
    text = {f"xla.sdy.{name}": StringAttr(str(value)) for name, value in shardings.items()}
    return CustomCallOp.create(
        operands=operands,
        result_types=types,
        properties={
            "call_target_name": StringAttr(f"xla.sdy.{target}"),
            "has_side_effect": BoolAttr.from_bool(True),
        },
        attributes={FRONTEND_ATTRIBUTES: DictionaryAttr({**text, "xla.sdy.manual_axes": StringAttr(axes)})},
    )
