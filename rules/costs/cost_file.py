"""Costs from a file, such as measured times, for all operations with a name or for single operations of a step.

    {"unit": "us", "operations": {"stablehlo.dot_general": 31.5, "stablehlo.add": 2}, "otherwise": 1,
     "steps": {"main": {"17": 40}}}

* `operations`: the cost of one execution, by operation name.
* `steps`: the costs of single operations, by function and operation index. Operations are numbered as
  in plans, after inlining and dead code elimination. These costs take precedence over `operations`.
* `otherwise`: the cost of every operation that neither of the two lists. Without `otherwise`, an operation that
  has no cost is an error. Views, constants and terminators cost nothing unless they are listed.
* `unit`: the unit that reports use.

At least one of `operations`, `steps` and `otherwise` is required. Costs are non-negative numbers, rounded to three
decimals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ...support.strict_json import EXACT, parse_strictly
from ..registry import facts_by_name
from .device import BadCost, as_object
from .traffic import is_free

SCALE = 1000
"""The integer that represents one unit of the file."""
_FIELDS = ("unit", "operations", "otherwise", "steps")


@dataclass(frozen=True)
class CostFile:
    """The costs from a file, as integer multiples of a thousandth of the file's unit."""

    path: str
    unit: str
    operations: Mapping[str, int]
    steps: Mapping[str, Mapping[int, int]]
    otherwise: int | None

    @classmethod
    def read(cls, path: str) -> CostFile:
        """Read a cost file.

        Raises:
            BadCost: The file cannot be read or does not contain valid costs.
        """
        try:
            return cls.of(parse_strictly(Path(path).read_text()), path)
        except OSError as error:
            raise BadCost(f"the cost file {path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise error if isinstance(error, BadCost) else BadCost(f"{path} is not valid JSON: {error}") from error

    @classmethod
    def of(cls, data: object, path: str) -> CostFile:
        """Return the costs in `data`, the parsed JSON of the file at `path`.

        Raises:
            BadCost: The data does not contain valid costs.
        """
        fields = as_object(data, path)
        for name in fields.keys() - set(_FIELDS):
            raise BadCost(f"{path} has an unknown field '{name}'; expected one of {', '.join(_FIELDS)}")
        if not fields.keys() & {"operations", "otherwise", "steps"}:
            raise BadCost(f"{path} has no costs: expected a field 'operations', 'otherwise' or 'steps'")
        unit = fields.get("unit", "units")
        if not isinstance(unit, str):
            raise BadCost(f"{path}: unit must be a string")
        by_name = as_object(fields.get("operations", {}), f"{path}: operations")
        steps = as_object(fields.get("steps", {}), f"{path}: steps")
        return cls(
            path,
            unit,
            {name: _cost(value, f"{path}: operations.{name}") for name, value in by_name.items()},
            {function: _costs_by_index(costs, f"{path}: steps.{function}") for function, costs in steps.items()},
            _cost(fields["otherwise"], f"{path}: otherwise") if "otherwise" in fields else None,
        )

    def of_step(self, operations: Sequence[Operation]) -> tuple[int, ...]:
        """Return the costs of one function's operations, in their order.

        Raises:
            Refusal: An operation has no cost, or the file contains a cost for an unknown operation or function.
        """
        if not operations:
            return ()
        function = operations[0].parent_op()
        name = function.sym_name.data if isinstance(function, FuncOp) else ""
        by_number = self.steps.get(name, {})
        self._check_names(operations)
        if (beyond := max(by_number, default=-1)) >= len(operations):
            last = f"the last operation of @{name} is {len(operations) - 1}"
            raise Refusal(operations[-1], f"{self.path} has a cost for operation {beyond}, but {last}")
        return tuple([self._cost_of(op, name, number, by_number) for number, op in enumerate(operations)])

    def _check_names(self, operations: Sequence[Operation]) -> None:
        """Raise `Refusal` if the file names an unknown operation or function. Otherwise the cost of a misspelled name
        would be ignored."""
        present = set(map(name_of, operations))
        for name in self.operations:
            if name not in present and facts_by_name(name) is None:
                raise Refusal(operations[0], f"{self.path} has a cost for {name}, which is not a known operation")
        functions = {function.sym_name.data for function in _sibling_functions(operations[0])}
        for name in self.steps.keys() - functions if functions else ():
            raise Refusal(
                operations[0], f"{self.path} has costs for @{name}, but the module has no function with this name"
            )

    def _cost_of(self, op: Operation, function: str, number: int, by_number: Mapping[int, int]) -> int:
        if number in by_number:
            return by_number[number]
        if name_of(op) in self.operations:
            return self.operations[name_of(op)]
        if is_free(op):
            return 0
        if self.otherwise is None:
            raise Refusal(
                op,
                f"{self.path} has no cost for {name_of(op)}, operation {number} of @{function}: "
                "add it to 'operations' or 'steps', or set 'otherwise', the cost of all other operations",
            )
        return self.otherwise


def _sibling_functions(op: Operation) -> list[FuncOp]:
    """Return all functions of the module that contains the operation; empty if the operation is not in a function of a
    module."""
    function = op.parent_op()
    module = function.parent_op() if function is not None else None
    return [sibling for sibling in module.ops if isinstance(sibling, FuncOp)] if isinstance(module, ModuleOp) else []


def _costs_by_index(data: object, where: str) -> Mapping[int, int]:
    costs = dict[int, int]()
    for number, value in as_object(data, where).items():
        if not number.isdecimal():
            raise BadCost(f"{where} contains '{number}', which is not the index of an operation")
        costs[int(number)] = _cost(value, f"{where}.{number}")
    return costs


def _cost(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise BadCost(f"{where} must be a non-negative number, not {value!r}")
    if value * SCALE >= EXACT:
        raise BadCost(f"{where} is too large: {value!r}; use a larger unit for all costs")
    return round(value * SCALE)
