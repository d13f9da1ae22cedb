"""Programs of any size whose shape is demanding: nested, shared, or of many parts."""

from __future__ import annotations

MAIN = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  {operation}
  func.return %x : tensor<4xf32>
}}
"""
ATTRIBUTE_USE = '"any.thing"() {{of = {alias}}} : () -> ()'
LOCATION_USE = '"any.thing"() : () -> () loc({alias})'

DOUBLING_ALIASES: dict[str, tuple[str, str]] = {
    "opaque attribute": ("#any.thing<1>", "#any.thing<{last}, {last}>"),
    "opaque type": ("!any.thing<1>", "!any.thing<{last}, {last}>"),
    "array": ("[1]", "[{last}, {last}]"),
    "dictionary": ("{b = 1}", "{{b = {last}, c = {last}}}"),
    "tuple": ("tuple<f32>", "tuple<{last}, {last}>"),
    "function type": ("() -> ()", "({last}) -> {last}"),
    "location in an attribute": ('loc("x")', "loc(fused[{last}, {last}])"),
}
"""The first value, and each value after it, made of the last one."""

CHAINED_LOCATIONS: dict[str, tuple[str, str]] = {
    "names": ('loc("x")', 'loc("n"({last}))'),
    "callers": ('loc("x")', 'loc(callsite("n" at {last}))'),
    "callees": ('loc("x")', 'loc(callsite({last} at "n"))'),
    "fused": ('loc("x":1:2)', 'loc(fused["n":3:4, {last}])'),
    "doubling call sites": ('loc("x")', "loc(callsite({last} at {last}))"),
    "doubling fusions": ("loc(unknown)", "loc(fused[{last}, {last}])"),
}


def aliases(first: str, following: str, levels: int, use: str = ATTRIBUTE_USE) -> str:
    """Return a function after a chain of aliases, each of which is defined by the previous one."""
    sign = "!" if first.startswith(("!", "tuple", "()")) else "#"
    names = [f"{sign}a{level}" for level in range(levels)]
    values = [first, *(following.format(last=last) for last in names[:-1])]
    definitions = "".join(f"{name} = {value}\n" for name, value in zip(names, values, strict=True))
    return definitions + MAIN.format(operation=use.format(alias=names[-1]))
