"""Collect the functions that the output calls: unmodified functions, and parts of functions.

A part is a function that consists of some of a whole function's operations. It is inserted after the whole function.
Its name is the whole function's name with a number, such as `silu_1`. Equal functions are merged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, Region

from ...dialects.cloning import clone_of
from ...support.operations import every_operation
from .bodies import InlinedBody
from .templates import CallPart, CallTemplate, Templates, same_body


@dataclass
class OutputFunctions:
    """The functions that the output calls.

    Attributes:
        original: The module before inlining.
        templates: The functions of that module.
        taken: The function names in use.
        parts: The parts of each function, by the name of the whole function.
    """

    original: ModuleOp
    templates: Templates
    taken: set[str]
    parts: dict[str, list[FuncOp]] = field(default_factory=dict[str, list[FuncOp]])

    @classmethod
    def of(cls, original: ModuleOp, templates: Templates) -> OutputFunctions:
        """Return the functions of a module before inlining, without any parts."""
        names = {name.data for op in original.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}
        return cls(original, templates, names | {op.sym_name.data for op in original.ops if isinstance(op, FuncOp)})

    def name_of_part(self, template: CallTemplate, body: InlinedBody) -> str:
        """Return the name of the part with this body. The part is added unless an equal part exists."""
        whole = template.function.sym_name.data
        parts = self.parts.setdefault(whole, [])
        function = _function(template, body)
        signature = _part(template, body)
        for part in parts:
            if self.templates.parts[part.sym_name.data] == signature and _are_equal(part, function):
                return part.sym_name.data
        name = self._free_name(whole)
        function.sym_name = StringAttr(name)
        parts.append(function)
        self.templates.parts[name] = signature
        return name

    def _free_name(self, name: str) -> str:
        free_name = next(free for number in count(1) if (free := f"{name}_{number}") not in self.taken)
        self.taken.add(free_name)
        return free_name

    def add_to(self, module: ModuleOp) -> None:
        """Insert the called functions into the module, in their original order."""
        here = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        others = iter([op for op in module.ops if not isinstance(op, FuncOp)])
        called = self._callees(module, here)
        listed = list[Operation]()
        for op in self.original.ops:
            if not isinstance(op, FuncOp):
                listed += [other for other in (next(others, None),) if other is not None]
                continue
            name = op.sym_name.data
            if name in here:
                listed.append(here[name])
            elif name in called:
                listed.append(clone_of(op))
            listed += [part for part in self.parts.get(name, ()) if part.sym_name.data in called]
        listed += others
        for op in list(module.ops):
            op.detach()
        module.body.block.add_ops(listed)

    def _callees(self, module: ModuleOp, here: Iterable[str]) -> set[str]:
        """Return the names `here` and the names of all functions that operations of the module call, directly or
        indirectly."""
        parts = {part.sym_name.data: part for listed in self.parts.values() for part in listed}
        names, waiting = set(here), list[Operation](module.ops)
        while waiting:
            for call in every_operation(waiting.pop()):
                if type(call) is not CallOp or (name := call.callee.string_value()) in names:
                    continue
                names.add(name)
                waiting.append(parts[name] if name in parts else self.templates.of(name).function)
        return names


def _are_equal(function: FuncOp, other: FuncOp) -> bool:
    return _properties_without_name(function) == _properties_without_name(other) and same_body(
        function.body.block, other.body.block
    )


def _properties_without_name(function: FuncOp) -> tuple[object, ...]:
    return {k: v for k, v in function.properties.items() if k != "sym_name"}, function.attributes


def _part(template: CallTemplate, body: InlinedBody) -> CallPart:
    place = {value: index for index, value in reversed(list(enumerate(template.returned)))}
    arguments = tuple(index for index, _ in body.arguments)
    return CallPart(template.function.sym_name.data, arguments, tuple(place.get(value) for value in body.returned))


def _function(template: CallTemplate, body: InlinedBody) -> FuncOp:
    """Return the template's function with a new body; the remaining arguments and results keep their attributes."""
    whole = template.function
    types = FunctionType.from_lists(
        [argument.type for argument in body.block.args], [value.type for value in body.returned]
    )
    function = FuncOp(whole.sym_name.data, types, Region(body.block), whole.sym_visibility)
    function.location = whole.location
    function.attributes.update(whole.attributes)
    function.properties.update({k: v for k, v in whole.properties.items() if k not in function.properties})
    part = _part(template, body)
    for name, indices in (("arg_attrs", part.arguments), ("res_attrs", part.returned)):
        if (attributes := function.properties.pop(name, None)) is not None:
            function.properties[name] = _select(attributes, indices)
    return function


def _select(attributes: Attribute, indices: Iterable[int | None]) -> Attribute:
    assert isinstance(attributes, ArrayAttr), "attributes of arguments and results are a list"
    dictionaries = cast(ArrayAttr[Attribute], attributes).data
    return ArrayAttr(DictionaryAttr({}) if index is None else dictionaries[index] for index in indices)
