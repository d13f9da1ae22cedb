"""Graphs for the planner's benchmarks and tests: joint graphs of networks, and random layered graphs.

    python -m recompute.benchmarks.solvers.planner_graphs unet > unet.json      # print the joint graph as JSON

Joint graphs have a forward and a backward pass, and are built without a framework. Layers are added in forward order.
The backward pass follows from the values that each layer's gradient reads: the layer's inputs, its result, both, or
none. The gradient of a concatenation is one buffer, and the gradients of its parts are views of that buffer. The cost
of an operation is its FLOPs plus 16 for each byte that it reads or writes, as in the graphs of partitioners.

Layered graphs follow Bartan et al. (Moccasin, ICML 2023), and have neither passes nor blocks. The number of layers is
about the square root of the number of operations. Each operation reads one to four earlier results, mostly of the
previous layer and sometimes of an earlier one, so few results are live for long. Sizes and costs are uniformly
distributed. Operations may be recomputed at any position. The graphs are drawn here, not taken from the paper's files.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

from recompute.benchmarks.harness.command_line import benchmark_parser
from recompute.planning.solvers.problem import OperationRow, Problem, problem_of

BYTES = 4
Node = dict[str, Any]


@dataclass(frozen=True)
class TapeLayer:
    """A layer on the tape, from which the backward pass is built.

    Attributes:
        needs: The nodes that the layer's backward operation reads in addition to the gradient.
        weight: The number of the layer's parameters.
    """

    name: str
    inputs: tuple[int, ...]
    result: int
    flops: int
    needs: tuple[int, ...]
    weight: int = 0


@dataclass
class GraphNet:
    """A network as a list of nodes in execution order, with sizes in elements."""

    nodes: list[Node] = field(default_factory=list[Node])
    sizes: list[int] = field(default_factory=list[int])
    tape: list[TapeLayer] = field(default_factory=list[TapeLayer])
    backward: bool = False

    def node(self, name: str, deps: Sequence[int], size: int, flops: int = 0, alias: int = -1, kind: str = "op") -> int:
        """Add a node of `size` elements, and return its index.

        `alias`: the index of the node that the new node views; -1 if it is not a view.
        """
        moved = 0 if alias != -1 or kind != "op" else size + sum(self.sizes[dep] for dep in deps)
        cost = flops + 16 * BYTES * moved
        index = len(self.nodes)
        self.nodes.append(
            {"id": index, "kind": kind, "name": f"{name}_{index}", "deps": list(deps), "bytes": BYTES * size}
            | {"alias": alias, "cost": cost, "bwd": self.backward, "shape": [size]}
        )
        self.sizes.append(size)
        return index

    def given(self, size: int) -> int:
        """Add an input of `size` elements."""
        return self.node("input", (), size, kind="input")

    def layer(self, name: str, inputs: Sequence[int], size: int, flops: int, needs: str = "in", weight: int = 0) -> int:
        """Add a layer. `needs`: the values that its gradient reads: `in`, `out`, `both`, or "" for none."""
        result = self.node(name, inputs, size, flops)
        saved = (*(inputs if needs in ("in", "both") else ()), *((result,) if needs in ("out", "both") else ()))
        self.tape.append(TapeLayer(name, tuple(inputs), result, flops, saved, weight))
        return result

    def matmul(self, x: int, size: int, inner: int, columns: int = 4) -> int:
        """Add a matrix product with `size` result elements in `columns` columns, each a sum of `inner` products."""
        return self.layer("matmul", [x], size, 2 * size * inner, weight=inner * columns)

    def relu(self, x: int) -> int:
        """Add a ReLU, whose gradient reads its result."""
        return self.layer("relu", [x], self.sizes[x], 0, "out")

    def norm(self, x: int) -> int:
        """Add a normalization, whose gradient reads its input."""
        return self.layer("norm", [x], self.sizes[x], 5 * self.sizes[x])

    def add(self, x: int, y: int) -> int:
        """Add a sum of two values, whose gradient reads no value."""
        return self.layer("add", [x, y], self.sizes[x], 0, "")

    def multiply(self, x: int, y: int) -> int:
        """Add an elementwise product, whose gradient reads both factors."""
        return self.layer("multiply", [x, y], self.sizes[x], 0)

    def concat(self, parts: Sequence[int]) -> int:
        """Add a concatenation, whose gradient reads no value."""
        return self.layer("concat", parts, sum(self.sizes[part] for part in parts), 0, "")

    def finished(self) -> dict[str, Any]:
        """Add the backward pass of the last result, and return the graph with all weight gradients as outputs."""
        loss = self.tape[-1].result
        self.backward = True
        gradients, outputs = {loss: self.node("tangent", (), self.sizes[loss], kind="tangent")}, [loss]
        for layer in reversed(self.tape):
            gradient = gradients.pop(layer.result, None)
            if gradient is None:
                continue
            if layer.weight:
                deps = [gradient, *layer.inputs]
                outputs.append(self.node(f"{layer.name}_weight", deps, layer.weight, layer.flops))
            at = 0
            for x in layer.inputs:
                if self.nodes[x]["kind"] == "op":
                    self._accumulate(gradients, x, self._gradient(layer, gradient, x, at))
                at += self.sizes[x]
        self.node("output", outputs, 0, kind="output")
        return {"name": "net", "nodes": self.nodes}

    def _gradient(self, layer: TapeLayer, gradient: int, x: int, at: int) -> int:
        if layer.name == "add":
            return gradient
        if layer.name == "concat":
            return self.node(f"slice_at_{at}", [gradient], self.sizes[x], alias=gradient)
        return self.node(f"{layer.name}_backward", [gradient, *layer.needs], self.sizes[x], layer.flops)

    def _accumulate(self, gradients: dict[int, int], x: int, gradient: int) -> None:
        existing = gradients.get(x)
        gradients[x] = gradient if existing is None else self.node("add", [existing, gradient], self.sizes[x])


def unet(depth: int = 4, size: int = 1 << 20, blocks: int = 2) -> GraphNet:
    """Return a U-Net with skip connections. `size`: the number of elements at the top level; each level halves it."""
    net = GraphNet()
    x, skips = net.given(size // 8), list[int]()
    for level in range(depth):
        for _ in range(blocks):
            x = net.relu(net.norm(net.matmul(x, size >> level, 288 << level)))
        skips.append(x)
        x = net.layer("pool", [x], size >> (level + 1), 0, "both")
    for _ in range(blocks):
        x = net.relu(net.norm(net.matmul(x, size >> depth, 288 << depth)))
    for level in reversed(range(depth)):
        x = net.concat([net.layer("up", [x], size >> level, 0, ""), skips[level]])
        for _ in range(blocks):
            x = net.relu(net.norm(net.matmul(x, size >> level, 288 << level)))
    net.layer("loss", [x], 1, 0)
    return net


def densenet(blocks: int = 3, layers: int = 8, size: int = 1 << 16) -> GraphNet:
    """Return a DenseNet, whose layers read the concatenation of all earlier layers of their block."""
    net = GraphNet()
    x = net.matmul(net.given(size), 2 * size, 64)
    for block in range(blocks):
        grown = [x]
        for _ in range(layers):
            joined = net.concat(grown) if len(grown) > 1 else x
            grown.append(net.matmul(net.relu(net.norm(joined)), size >> block, 9 * 32))
        x = net.matmul(net.concat(grown), size >> block, 128)
    net.layer("loss", [x], 1, 0)
    return net


def inception(blocks: int = 9, size: int = 1 << 18) -> GraphNet:
    """Return an Inception network, whose blocks have four branches of different sizes."""
    net = GraphNet()
    x = net.matmul(net.given(size), size, 27)
    for block in range(blocks):
        here = size >> (block // 3)
        entry = net.relu(net.matmul(x, here // 4, 64))
        three = net.relu(net.matmul(net.relu(net.matmul(x, here // 6, 64)), here // 3, 576))
        five = net.relu(net.matmul(net.relu(net.matmul(x, here // 16, 64)), here // 8, 1600))
        pooled = net.relu(net.matmul(net.layer("pool", [x], net.sizes[x], 0, "both"), here // 8, 64))
        x = net.norm(net.concat([entry, three, five, pooled]))
    net.layer("loss", [x], 1, 0)
    return net


def lstm(steps: int = 12, size: int = 1 << 14) -> GraphNet:
    """Return an LSTM that is unrolled over time, with a loss that reads the result of every time step."""
    net = GraphNet()
    h = c = net.matmul(net.given(size), size, 128)
    seen = list[int]()
    for _ in range(steps):
        gates = [net.layer("sigmoid", [net.matmul(h, size, 256)], size, 4 * size, "out") for _ in range(4)]
        c = net.add(net.multiply(gates[0], c), net.multiply(gates[1], gates[2]))
        h = net.multiply(gates[3], net.layer("tanh", [c], size, 8 * size, "out"))
        seen.append(h)
    net.layer("loss", [net.concat(seen)], 1, 0)
    return net


def experts(layers: int = 4, count: int = 4, size: int = 1 << 17) -> GraphNet:
    """Return a network of residual layers that mix experts of different sizes."""
    net = GraphNet()
    x = net.matmul(net.given(size), size, 64)
    for layer in range(layers):
        routed = net.layer("softmax", [net.matmul(x, count * 256, 512)], count * 256, 4096, "out")
        mixed = -1
        for expert in range(count):
            here = size // (2 + (expert + layer) % count)
            inner = net.layer(
                "gelu", [net.matmul(net.layer("gather", [x, routed], here, 0), 4 * here, 512)], 4 * here, 0
            )
            out = net.layer("scatter", [net.matmul(inner, here, 2048), routed], size, 0)
            mixed = out if mixed < 0 else net.add(mixed, out)
        x = net.norm(net.add(x, mixed))
    net.layer("loss", [x], 1, 0)
    return net


def encoder_decoder(layers: int = 5, size: int = 1 << 17) -> GraphNet:
    """Return a Transformer whose decoder layers all read the encoder's result."""
    net = GraphNet()
    memory = _transformer(net, net.matmul(net.given(size), size, 64), layers, None)
    x = _transformer(net, net.matmul(net.given(size // 2), size // 2, 64), layers, memory)
    net.layer("loss", [x], 1, 0)
    return net


def _transformer(net: GraphNet, x: int, layers: int, memory: int | None) -> int:
    size = net.sizes[x]
    for _ in range(layers):
        for source in (x,) if memory is None else (x, memory):
            q, k, v = net.matmul(x, size, 256), net.matmul(source, size, 256), net.matmul(source, size, 256)
            scores = net.layer("scores", [q, k], 3 * size, 2 * size * 256)
            weights = net.layer("softmax", [scores], 3 * size, 12 * size, "out")
            x = net.norm(net.add(x, net.matmul(net.layer("mix", [weights, v], size, 6 * size * 128), size, 256)))
        x = net.norm(net.add(x, net.matmul(net.layer("gelu", [net.matmul(x, 4 * size, 256)], 4 * size, 0), size, 1024)))
    return x


def chain(operations: int, irregular: bool = False) -> GraphNet:
    """Return a chain of residual blocks with about `operations` operations in both passes.

    `irregular`: whether blocks have different sizes, and skip connections over random distances.
    """
    net, draw = GraphNet(), random.Random(1)
    x = net.matmul(net.given(4096), 4096, 256)
    skip = x
    for block in range(operations // 14):
        size = draw.choice((2048, 4096, 8192, 12288)) if irregular else 8192
        y = net.relu(net.norm(net.matmul(x, size, 256)))
        x = net.norm(net.add(net.matmul(y, 4096, size // 16), x))
        if irregular and draw.random() < 0.1:
            x, skip = net.add(x, skip), x
        elif irregular and block % 7 == 3:
            skip = x
    net.layer("loss", [x], 1, 0)
    return net


def layered(operations: int, seed: int = 1) -> Problem:
    """Draw a layered graph of `operations` operations, with costs and sizes from 1 to 100."""
    draw, width = random.Random(seed), isqrt(operations)
    rows, used = list[OperationRow](), set[int]()
    for op in range(operations):
        start = op // width * width
        reads = {_source(draw, start, width) for _ in range(draw.randint(1, 4))} if start else set[int]()
        used |= reads
        rows.append(OperationRow(f"f{op}", draw.randint(1, 100), sorted(reads), [draw.randint(1, 100)]))
    return problem_of(rows, [op for op in range(operations) if op not in used], earliest_stage=0)


def _source(draw: random.Random, start: int, width: int) -> int:
    back = 1
    while draw.random() < 0.25 and start - (back + 1) * width >= 0:
        back += 1
    return start - back * width + draw.randrange(width)


NETS = {
    "unet": unet,
    "densenet": densenet,
    "inception": inception,
    "lstm": lstm,
    "experts": experts,
    "encoder-decoder": encoder_decoder,
}


def graph(name: str) -> dict[str, Any]:
    """Return a network of `NETS` with its backward pass, as a dictionary for JSON."""
    return NETS[name]().finished()


def main() -> None:
    """Print the graph of a network as JSON."""
    parser = benchmark_parser(__doc__)
    parser.add_argument(
        "net", choices=NETS, metavar="NET", help=f"the network whose graph is printed, from: {', '.join(NETS)}"
    )
    print(json.dumps(graph(parser.parse_args().net)))


if __name__ == "__main__":
    main()
