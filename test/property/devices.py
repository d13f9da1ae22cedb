"""Check the proof on random per-device bodies and on almost correct rewrites: proved pairs compute the same on devices.

    python -m recompute.test.property.devices --count 5000 --seed 0

Each program is executed as four devices would: vectors of eight are split by the input shardings, every device runs its
body, and the parts are joined by the output shardings. If devices disagree about a part that a sharding declares
shared, the part is NaN; programs with such results are skipped, since the proof trusts shardings. The rewrite
recomputes a value that an earlier body passes on, whatever the shardings between are, or changes a sharding. The exit
status is 1 if a pair is proved that computes different results.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import prove

WHOLE = 8
DEVICES = [{"a": first, "b": second} for first in range(2) for second in range(2)]
SHARDINGS = ((), ("a",), ("b",), ("a", "b"), ("b", "a"))
GROUPS = {"a": [[0, 2], [1, 3]], "b": [[0, 1], [2, 3]], "ab": [[0, 1, 2, 3]]}
KERNELS: dict[str, Callable[..., Any]] = {
    "sine": np.sin,
    "cosine": np.cos,
    "add": np.add,
    "multiply": np.multiply,
}
BINARY = ("add", "multiply")
Sharding = tuple[str, ...]
Line = tuple[str, str, tuple[str, ...]]
"""A value, what makes it (a kernel, a group that is summed over, `number` of the device), and of which values."""


@dataclass(frozen=True)
class Body:
    """Per-device body. `into`: for each argument the outer value and its sharding. `out`: for each result the inner
    value."""

    into: Mapping[str, tuple[str, Sharding]]
    lines: tuple[Line, ...]
    out: Mapping[str, tuple[str, Sharding]]

    def extents(self) -> dict[str, int]:
        entries = {name: extent(sharding) for name, (_, sharding) in self.into.items()}
        for name, _, operands in self.lines:
            entries[name] = entries[operands[0]]
        return entries

    def run(self, values: dict[str, Any]) -> None:
        """Run the body and add its results to the values."""
        there = {name: [part(values[actual], lies, at) for at in DEVICES] for name, (actual, lies) in self.into.items()}
        for name, kind, operands in self.lines:
            there[name] = computed(kind, [there[operand] for operand in operands])
        for name, (first, sharding) in self.out.items():
            values[name] = put_together(there[first], sharding)


def extent(sharding: Sharding) -> int:
    return WHOLE >> len(sharding)


def alike(sharding: Sharding) -> list[Sharding]:
    return [actual for actual in SHARDINGS if len(actual) == len(sharding)]


def part(whole: Any, sharding: Sharding, device: Mapping[str, int]) -> Any:
    return whole.reshape(-1, extent(sharding))[place(sharding, device)]


def place(sharding: Sharding, device: Mapping[str, int]) -> int:
    index = 0
    for axis in sharding:
        index = 2 * index + device[axis]
    return index


def computed(kind: str, operands: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the result of an operation on each device."""
    if kind == "number":
        return [np.full_like(first, number) for number, first in enumerate(operands[0])]
    if kind in GROUPS:
        sums = {member: sum(operands[0][item] for item in group) for group in GROUPS[kind] for member in group}
        return [sums[number] for number in range(len(DEVICES))]
    return [KERNELS[kind](*given) for given in zip(*operands, strict=True)]


def put_together(parts: Sequence[Any], sharding: Sharding) -> Any:
    result = np.empty((WHOLE // extent(sharding), extent(sharding)))
    for index in range(len(result)):
        same = [first for first, device in zip(parts, DEVICES, strict=True) if place(sharding, device) == index]
        result[index] = same[0] if all(np.array_equal(same[0], item) for item in same) else np.nan
    return result.reshape(-1)


def results(bodies: Sequence[Body], seed: int) -> list[Any]:
    numbers = np.random.default_rng(seed)
    values = {name: numbers.normal(size=WHOLE) for name in ("x", "y")}
    for body in bodies:
        body.run(values)
    return [values[name] for name in list(values)[-2:]]


def written(bodies: Sequence[Body]) -> str:
    """Return the text of a module whose results are the last two values."""
    lines, channel, names = list[str](), 0, ["x", "y"]
    for number, body in enumerate(bodies):
        extents, inside = body.extents(), list[str]()
        for name, kind, operands in body.lines:
            channel += 1
            listed = [f"%{operand}_{number}" for operand in operands]
            inside.append(line(f"%{name}_{number}", kind, listed, f"tensor<{extents[name]}xf32>", channel))
        names += body.out
        arguments = ", ".join(f"%{name}_{number}: tensor<{extents[name]}xf32>" for name in body.into)
        returned = ", ".join(f"%{first}_{number}" for first, _ in body.out.values())
        types = ", ".join(f"tensor<{extents[first]}xf32>" for first, _ in body.out.values())
        wholes = [", ".join(["tensor<8xf32>"] * len(item)) for item in (body.into, body.out)]
        lines.append(
            f"{', '.join(f'%{name}' for name in body.out)} = sdy.manual_computation("
            f"{', '.join(f'%{first}' for first, _ in body.into.values())}) in_shardings={shardings(body.into)} "
            f'out_shardings={shardings(body.out)} manual_axes={{"a", "b"}} ({arguments}) {{\n'
            + "\n".join([*inside, f"sdy.return {returned} : {types}"])
            + f"\n}} : ({wholes[0]}) -> ({wholes[1]})"
        )
    ends = f"return {', '.join(f'%{name}' for name in names[-2:])} : tensor<8xf32>, tensor<8xf32>"
    taken = "(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)"
    return "\n".join(['sdy.mesh @mesh = <["a"=2, "b"=2]>', f"func.func public @main{taken} {{", *lines, ends, "}"])


def shardings(values: Mapping[str, tuple[str, Sharding]]) -> str:
    axes = [", ".join(f'"{axis}"' for axis in first) for _, first in values.values()]
    return "[" + ", ".join(f"<@mesh, [{{{ax}}}]>" for ax in axes) + "]"


def line(name: str, kind: str, operands: Sequence[str], type_: str, channel: int) -> str:
    if kind == "number":
        wide = f"{name} = stablehlo.broadcast_in_dim {name}f, dims = [] : (tensor<f32>) -> {type_}"
        result = f'{name}d = "stablehlo.partition_id"() : () -> tensor<ui32>'
        return f"{result}\n{name}f = stablehlo.convert {name}d : (tensor<ui32>) -> tensor<f32>\n{wide}"
    if kind not in GROUPS:
        return f"{name} = stablehlo.{kind} {', '.join(operands)} : {type_}"
    groups = f"dense<{GROUPS[kind]}> : tensor<{len(GROUPS[kind])}x{len(GROUPS[kind][0])}xi64>"
    message = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>, replica_groups = {groups}"
    return f"""{name} = "stablehlo.all_reduce"({operands[0]}) <{{{message}, use_global_device_ids}}> ({{
^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %r = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %r : tensor<f32>
}}) : ({type_}) -> {type_}"""


def program(dice: Random) -> list[Body]:
    names, bodies = ["x", "y"], list[Body]()
    for number in range(dice.choice([2, 2, 3])):
        into = {f"i{n}": (dice.choice(names), dice.choice(SHARDINGS)) for n in range(dice.randint(1, 3))}
        body = Body(into, (), {})
        for n in range(dice.randint(1, 3)):
            extents = body.extents()
            kind = dice.choice([*KERNELS, *GROUPS, "number"] if dice.random() < 0.4 else list(KERNELS))
            first = dice.choice(list(extents))
            others = [actual for actual in extents if extents[actual] == extents[first]]
            operands = (first, dice.choice(others)) if kind in BINARY else (first,)
            body = replace(body, lines=(*body.lines, (f"t{n}", kind, operands)))
        extents, out = body.extents(), dict[str, tuple[str, Sharding]]()
        for n in range(dice.randint(1, 2)):
            item = dice.choice(body.lines)[0]
            out[f"w{number}{n}"] = item, dice.choice([lies for lies in SHARDINGS if extent(lies) == extents[item]])
        bodies.append(replace(body, out=out))
        names += out
    return bodies


def rewritten(bodies: Sequence[Body], dice: Random) -> list[Body]:
    result, careless = list(bodies), dice.random() < 0.3
    for at, body in enumerate(bodies):
        for name, (whole, sharding) in body.into.items():
            maker = next((actual for actual in bodies[:at] if whole in actual.out), None)
            if maker is None or dice.random() < 0.3:
                continue
            lies = maker.out[whole][1]
            if lies == sharding or (careless and len(lies) == len(sharding)):
                result[at] = computed_again(result[at], name, maker, maker.out[whole][0])
    if dice.random() < 0.3:
        at = dice.randrange(len(result))
        body, (field, values) = result[at], dice.choice([("into", result[at].into), ("out", result[at].out)])
        name = dice.choice(list(values))
        other = values[name][0], dice.choice(alike(values[name][1]))
        result[at] = replace(body, **{field: {**values, name: other}})
    return result


def computed_again(body: Body, name: str, maker: Body, actual: str) -> Body:
    """Return the body with an argument recomputed from the operands of the body that passes it on."""
    again = [(f"{name}{first}", kind, tuple(f"{name}{o}" for o in operands)) for first, kind, operands in maker.lines]

    def of(first: str) -> str:
        return f"{name}{actual}" if first == name else first

    lines = [(first, kind, tuple(map(of, operands))) for first, kind, operands in body.lines]
    into = {first: output for first, output in body.into.items() if first != name}
    into |= {f"{name}{first}": output for first, output in maker.into.items()}
    out = {first: (of(inside), sharding) for first, (inside, sharding) in body.out.items()}
    return Body(into, (*again, *lines), out)


def check(seed: int) -> str:
    """Check one random pair, and return its class.

    `other`: proved, but different results. Otherwise `same text`, `disagreeing`, `rejected` or `same`.
    """
    dice = Random(seed)
    before = program(dice)
    after = rewritten(before, dice)
    wanted, result = results(before, seed), results(after, seed)
    if np.any(np.isnan(wanted)):
        return "disagreeing"
    texts = written(before), written(after)
    if texts[0] == texts[1]:
        return "same text"
    if not prove(parse_module(texts[0]), parse_module(texts[1])):
        return "rejected"
    return "same" if np.array_equal(wanted, result) else "other"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many pairs (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    given = parser.parse_args()
    verdicts = Counter[str]()
    for seed in range(given.seed, given.seed + given.count):
        verdicts[verdict := check(seed)] += 1
        if verdict == "other":
            print(f"seed {seed}: proved equal, and is not", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if verdicts["other"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
