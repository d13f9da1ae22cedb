"""The bytes that a budget allows on the device of a compiled step."""

from __future__ import annotations

from typing import Any, cast

import jax
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, SSAValue

from ....analysis.step.devices import partitions_of
from ....analysis.step.order import functions_of
from ....analysis.step.views import value_bytes
from ....search.limits import temporaries_limit
from ....support.diagnostics import Refusal
from ....support.units import is_share, parse_budget
from ..internals.device_memory import reported_free_bytes
from ..keywords.budget_option import DEVICE
from .allocation import UnknownMemory, fixed_bytes, reported_bytes

_UNCOUNTED = {"tf.aliasing_output", "jax.buffer_donor", "mhlo.memory_kind"}
"""The attributes of arguments that may share the memory of a result, and of values in a memory of a given kind."""
_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""


def device_limit(module: ModuleOp, budget: str, plain: jax.stages.Compiled) -> int | None:
    """Return the bytes of the device that a budget allows, including arguments and results; None for the budget `min`.

    The parameters are the same as for `limit_of_step`. Raises `UnknownMemory` if the compiler or the device reports no
    sizes.
    """
    plain_bytes = reported_bytes(module, plain, "a budget")
    if budget == DEVICE:
        return max(1, free_bytes(module))
    limit = parse_budget(budget, plain_bytes)
    return limit + fixed_bytes(plain) if limit is not None and is_share(budget) else limit


def limit_of_step(module: ModuleOp, budget: str, plain: jax.stages.Compiled) -> int | None:
    """Return the bytes that a budget leaves for temporaries; None for the budget `min`.

    Args:
        module: The step, for the position of an error.
        budget: The budget, as `checked_budget` returns it.
        plain: The compiled plain step.

    Raises:
        UnknownMemory: If the compiler or the device reports no sizes.
        Refusal: If arguments and results alone exceed the budget.
    """
    plain_bytes = reported_bytes(module, plain, "a budget")
    text = f"{max(1, free_bytes(module))}B" if budget == DEVICE else budget
    return temporaries_limit(module, text, plain_bytes, fixed_bytes(plain))


def demand_possible_budget(module: ModuleOp, budget: str | None) -> None:
    """Raise the errors of `limit_of_step` that are known before anything is compiled.

    Args:
        module: The step, as JAX lowers it.
        budget: The budget, as `checked_budget` returns it; None if there is none.

    Raises:
        UnknownMemory: For the budget `device` if the device does not report its memory.
        Refusal: If arguments and results alone exceed the budget.
    """
    if budget is None:
        return
    text = f"{max(1, free_bytes(module))}B" if budget == DEVICE else budget
    if not is_share(text):
        devices = partitions_of(module)
        values = "arguments and results" if devices == 1 else f"arguments and results, evenly on {devices} devices"
        temporaries_limit(module, text, 1, least_fixed_bytes(module) // devices, values)


def least_fixed_bytes(module: ModuleOp) -> int:
    """Return a lower bound on the bytes of arguments and results, summed over all devices.

    An argument that the compiler may reuse for a result, or that is in the memory of the host, is not counted. Values
    of dynamic shapes are not counted either.
    """
    function = next((function for function in functions_of(module) if function.sym_name.data == "main"), None)
    if function is None:
        return 0
    block = function.body.blocks[0]
    results = [] if block.last_op is None else list(block.last_op.operands)
    arguments = zip(block.args, _attributes_of(function.arg_attrs, len(block.args)), strict=True)
    results = zip(results, _attributes_of(function.res_attrs, len(results)), strict=True)
    return sum(_static_bytes(value) for value, names in (*arguments, *results) if not names & _UNCOUNTED)


def _attributes_of(attributes: Attribute | None, count: int) -> list[set[str]]:
    """Return the names of the attributes of each argument or result. `count`: the number of arguments or results."""
    if not isinstance(attributes, ArrayAttr):
        return [set[str]() for _ in range(count)]
    entries = cast(ArrayAttr[DictionaryAttr], attributes).data
    return [set(entry.data) for entry in entries]


def _static_bytes(value: SSAValue) -> int:
    """Return the bytes of a value; 0 if they are unknown."""
    try:
        return value_bytes(value)
    except Refusal:
        return 0


def free_bytes(module: ModuleOp) -> int:
    """Return the number of bytes that the device reports as free. Raises `UnknownMemory` if it reports none."""
    if (count := reported_free_bytes()) is None:
        device: Any = _JAX.local_devices()[0]
        raise UnknownMemory(
            module, f'budget="device": {device.platform} does not report its memory: give bytes or a share'
        )
    return count
