"""Writer of trees in generic form. Uses without a definition are written too, and will be refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .tree import UNIT, Block, Operation, Program, Value


def written(program: Program) -> str:
    text = "".join(_Writer(program.module).operation(program.module, ""))
    return f"{text}\n{program.resources}\n" if program.resources else text


def dictionary_text(dictionary: Mapping[str, str]) -> str:
    return "{" + ", ".join(key if value == UNIT else f"{key} = {value}" for key, value in dictionary.items()) + "}"


def result_types(results: Sequence[Value]) -> str:
    types = [value.type for value in results]
    # The arrow of a single function type would be read as the end of the list.
    if len(types) == 1 and not types[0].startswith("("):
        return types[0]
    return f"({', '.join(types)})"


class _Writer:
    def __init__(self, module: Operation):
        self._names: dict[Value, str] = {}
        self._labels: dict[Block, str] = {}
        for op in module.walk():
            self._name_results(op)
            for block in op.blocks():
                self._labels[block] = f"^bb{len(self._labels)}"
                for value in block.arguments:
                    self._names[value] = f"%{len(self._names)}"

    def _name_results(self, op: Operation) -> None:
        first, several = f"%{len(self._names)}", len(op.results) > 1
        for index, value in enumerate(op.results):
            self._names[value] = f"{first}#{index}" if several else first

    def operation(self, op: Operation, indent: str) -> Iterator[str]:
        yield f'{indent}{self._defines(op.results)}"{op.name}"({self._uses(op.operands)})'
        if op.successors:
            yield f"[{', '.join(self._labels.get(block, '^elsewhere') for block in op.successors)}]"
        if op.properties:
            yield f" <{dictionary_text(op.properties)}>"
        if op.regions:
            yield " ("
            for index, region in enumerate(op.regions):
                yield ", " if index else ""
                yield from self._region(region, indent)
            yield ")"
        if op.attributes:
            yield f" {dictionary_text(op.attributes)}"
        taken = ", ".join(value.type for value in op.operands)
        yield f" : ({taken}) -> {result_types(op.results)}\n"

    def _defines(self, results: Sequence[Value]) -> str:
        if not results:
            return ""
        first, count = self._names[results[0]].partition("#")[0], len(results)
        return f"{first} = " if count == 1 else f"{first}:{count} = "

    def _region(self, region: Sequence[Block], indent: str) -> Iterator[str]:
        yield "{\n"
        for index, block in enumerate(region):
            if index or block.arguments or not block.operations:
                listed = ", ".join(f"{self._names[value]}: {value.type}" for value in block.arguments)
                yield f"{indent}{self._labels[block]}{f'({listed})' if listed else ''}:\n"
            for op in block.operations:
                yield from self.operation(op, indent + "  ")
        yield indent + "}"

    def _uses(self, values: Iterable[Value]) -> str:
        return ", ".join(self._names.get(value, "%undefined") for value in values)
