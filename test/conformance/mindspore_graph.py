"""Parser of MindSpore's output about a compiled graph: the dump of the `validate` stage, and the pool's peak in the
log.

    %38(...) = PrimFunc_RealDiv(%37, ...) ... cnode_attrs: {..., duplicated: Bool(1), ...}
          # Fullname with scope: (Gradients/recompute_Default/...)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NODE = re.compile(r"^\s+%(\d+)\([^)]*\) = (\S+?)\((.*)$")
_SCOPE = re.compile(r"# Fullname with scope: \(([^)]*)\)")
_PEAK = re.compile(r"actual peak memory usage.*|peak used mem:(\d+)M")
# They forward other values; a value is saved for the readers of the forwarded value.
_PASSING = ("MakeTuple", "Depend", "TupleGetItem", "Load", "UpdateState", "Return")


@dataclass
class Node:
    number: int
    kind: str
    text: str
    scope: str = ""

    @property
    def operands(self) -> list[int]:
        arguments = self.text.partition(") {")[0].partition(" cnode_attrs")[0].partition(" primitive_attrs")[0]
        return [int(match) for match in re.findall(r"%(\d+)\b", arguments)]

    @property
    def is_copy(self) -> bool:
        return "duplicated: Bool(1)" in self.text

    @property
    def is_backward(self) -> bool:
        return self.scope.startswith("Gradients") or self.is_copy or "recompute_depend" in self.text


def read_graph(folder: Path) -> list[Node]:
    """Return the nodes of the entry graph. Raises `FileNotFoundError` if there is no dump."""
    dumps = sorted(folder.rglob("*_validate_*.ir"))
    if not dumps:
        raise FileNotFoundError(f"no *_validate_*.ir in {folder}")
    return list(_nodes(dumps[-1].read_text().splitlines()))


def _nodes(lines: list[str]) -> Iterator[Node]:
    node: Node | None = None
    for line in lines:
        if match := _NODE.match(line):
            if node is not None:
                yield node
            node = Node(int(match[1]), match[2].removeprefix("PrimFunc_"), match[3])
        elif node is not None and (scope := _SCOPE.search(line)):
            node.scope = scope[1]
    if node is not None:
        yield node


def clones(graph: list[Node]) -> int:
    """Count the copies that compute something."""
    return sum(node.is_copy and node.kind not in _PASSING for node in graph)


def gates(graph: list[Node]) -> tuple[int, int]:
    """Return the number of tokens for which a copy waits, and how many of them are empty."""
    numbers = {node.operands[-1] for node in graph if "recompute_depend" in node.text and node.operands}
    tokens = [node for node in graph if node.number in numbers and node.kind == "MakeTuple"]
    return len(tokens), sum(not node.operands for node in tokens)


def held(graph: list[Node]) -> int:
    """Count the values that the forward pass computes and the backward pass reads."""
    forward = {node.number for node in graph if not node.is_backward and node.kind not in _PASSING}
    return len({number for node in graph if node.is_backward for number in node.operands} & forward)


def peak_bytes(log: str) -> int | None:
    """Return the peak in bytes; the pool reports whole MiB."""
    items = [int(number) for number in _PEAK.findall(log) if number]
    return max(items) * 2**20 if items else None
