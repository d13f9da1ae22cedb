"""Descriptions of operations and values for messages and reports: names, types, source positions and modules of the
model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.names import Names
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp
from ...dialects.stablehlo.slices import DynamicUpdateSliceOp
from ...planning.by_segment.numbered_segments import is_numbered
from ...support.locations import base_name, position_of_operation, source_position
from ...support.operations import name_of
from ...support.type_guards import is_tensor
from .jax_paths import path_of, scope_of

WHILE = "stablehlo.while"
LOOP_SCOPES = frozenset({"while", "body", "cond", "closed_call", "branch"})
"""Path parts of operations in loops and conditionals. They are not modules of the user."""
_EINSUM = re.compile(r"[A-Za-z. ]*(,[A-Za-z. ]*)*->[A-Za-z. ]*")
"""The equation of an `einsum`, such as `bhqk,bkhd->bqhd`, which JAX uses as the scope of its operations."""


def value_name(op: Operation, value: SSAValue | None = None) -> str:
    """Return the best available name of the value.

    This is its name in the model (`recompute.name`), or else its SSA name (`%h`), or else the path in its location.
    """
    stated = op.attributes.get(Names.NAME)
    if isinstance(stated, StringAttr):
        return stated.data
    hint = (value or op.results[0]).name_hint if op.results else None
    return f"%{hint}" if hint is not None else path_of(op.location)


def source_of(op: Operation) -> str:
    """Return `file:line:col` from the location of the operation; "" if there is none."""
    position = source_position(op.location)
    return "" if position is None else ":".join(map(str, position))


def module_of(op: Operation) -> str:
    """Return the path of named scopes around the operation, such as `LM/Block_0/Dense_1`; "" outside scopes.

    The module of a loop over layers is the scope that the operations of its body share: `LM/Block` for a loop in `LM`
    whose body contains `Block/attention` and `Block/mlp`. A value that only a loop reads belongs to the loop. A
    constant that flax moves out of the body of `nn.scan` belongs to its module inside the loop.
    """
    own = _scopes_of(op)
    if not op.regions:
        readers = dict.fromkeys(use.operation for result in op.results for use in result.uses)
        loops = [reader for reader in readers if name_of(reader) == WHILE]
        if len(readers) == len(loops) == 1 and _scopes_of(loops[0])[: len(own)] == own:
            return module_of(loops[0])
        others = [loop for loop in loops if own and _scopes_of(loop)[:1] not in ((), own[:1])]
        inside_loops = [scopes for loop in others if (scopes := _joined(module_of(loop), own))]
        return "/".join(inside_loops[0] if inside_loops else own)
    inside = {scopes for inner in op.walk() if (scopes := _scopes_of(inner)) != own[: len(scopes)]}
    shared = [level[0] for level in takewhile(lambda level: len({*level}) == 1, zip(*inside, strict=False))]
    return "/".join(shared or own)


def modules_of_copies(copies: Iterable[Operation]) -> dict[Operation, str]:
    """Return the module of each copied operation, as `module_of` does.

    The module of a copy inside a loop is the loop's module or a part of it. If the copy's own scopes lead elsewhere, it
    belongs to the loop's module.
    """
    modules, loops = dict[Operation, str](), dict[Operation, str]()
    for copy in copies:
        loop, own = copy.parent_op(), module_of(copy)
        if loop is not None and name_of(loop) == WHILE:
            if loop not in loops:
                loops[loop] = module_of(loop)
            own = own if _is_in_module(own, loops[loop]) else loops[loop]
        modules[copy] = own
    return modules


def _is_in_module(module: str, outer: str) -> bool:
    """Return whether a module is `outer` or a part of it. Every module is a part of "", the whole model."""
    return not outer or f"{module}/".startswith(f"{outer}/")


def _joined(outer: str, inner: Sequence[str]) -> tuple[str, ...]:
    """Join a module with a path that begins with the last components of the module; return () for any other path.

    `LM/Block` and `Block/mlp` are joined as `LM/Block/mlp`. The path of a constant that flax moves out of the body of
    `nn.scan` lacks the scopes around the loop.
    """
    outer_scopes = tuple(outer.split("/"))
    for level in range(1, len(outer_scopes)):
        shared = outer_scopes[level:]
        if shared == tuple(inner[: len(shared)]):
            return *outer_scopes[:level], *inner
    return ()


def module_of_stack(result: OpResult) -> str:
    """Return the module of the operation inside a loop that computes the slices of a stack; "" if the result is not a
    stack, or if this module is outside the scopes that the body shares.

    `result`: a result of the loop. It is a stack if each iteration updates one slice of it.
    """
    last = result.op.regions[-1].block.last_op if name_of(result.op) == WHILE else None
    update = last.operands[result.index].owner if last is not None else None
    if not isinstance(update, DynamicUpdateSliceOp):
        return ""
    maker = update.update.owner
    while isinstance(maker, BroadcastInDimOp | ReshapeOp):
        maker = maker.operands[0].owner
    module = "/".join(_scopes_of(maker)) if isinstance(maker, Operation) else ""
    return module if _is_in_module(module, module_of(result.op)) else ""


def without_loop_scopes(path: str) -> str:
    """Return a path of scopes without the scopes that JAX adds: the scopes of loop bodies, and the equations of
    `einsum`.

    A path that has no other scopes is returned unchanged.
    """
    return "/".join(filter(_is_users, path.split("/"))) or path


def segment_names(segments: Iterable[tuple[str, Sequence[Operation]]]) -> list[str]:
    """Return, for each segment, a name by which the user can find it in the model.

    The name is the path of the segment's scope, without the scopes of loops, or the result of `place_in_model` for a
    segment without a scope. Repetitions are numbered, as in `Block#1`.

    Args:
        segments: Pairs of a segment's name in the module and its operations, in program order.
    """
    names, times = list[str](), Counter[str]()
    for segment, operations in segments:
        name = without_loop_scopes(segment) if is_scope(segment) else place_in_model(operations) or segment
        names.append(f"{name}#{times[name]}" if times[name] else name)
        times[name] += 1
    return names


def is_scope(segment: str) -> bool:
    """Return whether the name of a segment is a path of scopes that contains a user-defined scope."""
    own = set(segment.partition("#")[0].split("/")) - LOOP_SCOPES - {""}
    return bool(own) and not is_numbered(segment)


def place_in_model(operations: Iterable[Operation]) -> str:
    """Return the location of the operations in the user's model.

    The location is the path of the first operation with named scopes. If no operation has named scopes, it is the line
    of the first operation with a source position (`train.py:41`), or "" if there is none.
    """
    operations = list(operations)
    if scopes := next((scopes for op in operations if (scopes := _scopes_of(op))), ()):
        return "/".join(scopes)
    position = next((position for op in operations if (position := position_of_operation(op)) is not None), None)
    return "" if position is None else f"{base_name(position[0])}:{position[1]}"


def _scopes_of(op: Operation) -> tuple[str, ...]:
    """Return the named scopes around the operation, without the scopes that JAX adds."""
    return tuple(filter(_is_users, scope_of(op.location).path))


def _is_users(scope: str) -> bool:
    """Return whether the user or a library of layers named the scope, rather than JAX."""
    return scope not in LOOP_SCOPES and not _EINSUM.fullmatch(scope)


def type_text(value: SSAValue) -> str:
    """Return a tensor type as `f32[256,64]`, and any other type as MLIR prints it."""
    if not is_tensor(value.type):
        return str(value.type)
    shape = ["?" if size < 0 else str(size) for size in value.type.get_shape()]
    return f"{value.type.get_element_type()}[{','.join(shape)}]"


def describe_briefly(op: Operation) -> str:
    """Return the operation's name, result and source line, as in `stablehlo.tanh %h (train.py:41:9)`, without the path
    of its file. The path in the location is given only if there is no source line."""
    if (position := source_position(op.location)) is None:
        return describe_operation(op)
    file, line, column = position
    name = value_name(op)
    words = [name_of(op), "" if name == path_of(op.location) else name, f"({base_name(file)}:{line}:{column})"]
    return " ".join(filter(None, words))


def describe_operation(op: Operation) -> str:
    """Return the operation's name, result and source, as in `stablehlo.tanh %h (train.py:41:9)`.

    Unknown parts are omitted.
    """
    words = [name_of(op), value_name(op), f"({source_of(op)})" if source_of(op) else ""]
    return " ".join(filter(None, words))
