"""Small random graph files, with multi-result operations, views of views, inputs, tangents and multiple outputs."""

from __future__ import annotations

import random
from typing import Any

Node = dict[str, Any]


def random_nodes(seed: int) -> list[Node]:
    draw, nodes = random.Random(seed), list[Node]()
    count = draw.randint(6, 14)

    def node(kind: str, deps: list[int], size: int, alias: int = -1, **more: Any) -> int:
        number = 10 + 3 * len(nodes)
        entry = {"id": number, "kind": kind, "name": f"{kind}{number}", "deps": deps, "bytes": size, "alias": alias}
        nodes.append({**entry, "cost": draw.randint(1, 9), "bwd": len(nodes) > count // 2, "shape": [size]} | more)
        return number

    usable = [node("input", [], 7)]
    while len(nodes) < count:
        deps = draw.sample(usable, min(len(usable), draw.choice((1, 1, 2))))
        kind = draw.random()
        if kind < 0.2:
            source = draw.choice(usable)
            size = max(1, next(n["bytes"] for n in nodes if n["id"] == source) // draw.choice((1, 2)))
            usable.append(node("op", [source], size, alias=source))
        elif kind < 0.35:
            several = node("op", deps, draw.randint(2, 9))
            for _ in range(2):
                usable.append(node("op", [several], 1, alias=several, split=True, obytes=draw.randint(1, 5)))
        elif kind < 0.4:
            usable.append(node("tangent", [], 3))
        else:
            usable.append(node("op", deps, draw.randint(1, 9), again=draw.random() < 0.9))
    node("output", [*draw.sample(usable, min(len(usable), 2)), usable[-1]], 0)
    return nodes
