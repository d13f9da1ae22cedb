"""A loop whose body is given as text, and pairs of bodies that compute different values or have different effects."""

from __future__ import annotations

V, N, B = "tensor<4xf32>", "tensor<i32>", "tensor<i1>"
MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\nsdy.mesh @turned = <["b"=2, "a"=2]>\n'
OTHERS = f"""
func.func private @f(%p: {V}) -> {V} {{
  %q = stablehlo.sine %p : {V}
  return %q : {V}
}}
func.func private @g(%p: {V}) -> {V} {{
  %q = stablehlo.cosine %p : {V}
  return %q : {V}
}}
"""


def looped(body: str, more: bool = False) -> str:
    """Return a program that runs the body five times.

    The body makes %next of the carry %h, the number %i and the argument %x. With `more` there is an unused carry
    besides, so that the first tier of the proof does not suffice.
    """
    names, types, values = "%n, %y", f"{N}, {V}", "%i1, %next"
    starts = "%i = %zero, %h = %x"
    if more:
        names, types, values = f"{names}, %z", f"{types}, {V}", f"{values}, %h"
        starts = f"{starts}, %k = %x"
    return f"""{MESH}func.func public @main(%x: {V}, %many: {N}, %state: tensor<2xui64>) -> {V} {{
  %zero = stablehlo.constant dense<0> : {N}
  {names} = stablehlo.while({starts}) : {types}
  cond {{
    %end = stablehlo.constant dense<5> : {N}
    %c = stablehlo.compare LT, %i, %end, SIGNED : ({N}, {N}) -> {B}
    stablehlo.return %c : {B}
  }} do {{
    %one = stablehlo.constant dense<1> : {N}
    %i1 = stablehlo.add %i, %one : {N}
{body}
    stablehlo.return {values} : {types}
  }}
  return %y : {V}
}}
{OTHERS}"""


def last(text: str) -> str:
    """Return a body that makes a vector %v by `text`; %v minus the argument is the next carry."""
    return f"{text}\n    %next = stablehlo.subtract %v, %x : {V}"


def of_number(text: str) -> str:
    """Return a body that makes an integer %m of the iteration number by `text`, and adds it to the carry."""
    return last(
        f"{text}\n    %f = stablehlo.convert %m : ({N}) -> tensor<f32>\n"
        f"    %w = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> {V}\n"
        f"    %v = stablehlo.add %h, %w : {V}"
    )


def constant(number: str, name: str = "%c", kind: str = N) -> str:
    return f"    {name} = stablehlo.constant dense<{number}> : {kind}\n"


def binary(name: str, left: str, right: str, kind: str = V, result: str = "%v") -> str:
    return f"    {result} = stablehlo.{name} {left}, {right} : {kind}\n"


def narrowed(through: str) -> str:
    by = constant("100") + binary("multiply", "%i", "%c", N, "%l")
    there = f"    %s = stablehlo.convert %l : ({N}) -> tensor<{through}>\n"
    return of_number(by + there + f"    %m = stablehlo.convert %s : (tensor<{through}>) -> {N}")


def branched(*branches: str, at: str = "%i") -> str:
    listed = ", ".join(
        f"{{\n      %r{n} = {text}\n      stablehlo.return %r{n} : {V}\n    }}" for n, text in enumerate(branches)
    )
    return last(f'    %v = "stablehlo.case"({at}) ({listed}) : ({N}) -> {V}')


def unary(name: str, operand: str = "%h") -> str:
    return f"stablehlo.{name} {operand} : {V}"


def reduced(by: str = "add", start: str = "0.0", left: str = "%a", right: str = "%b") -> str:
    return last(f"""{constant(start, "%s", "tensor<f32>")}    %t = "stablehlo.reduce"(%h, %s) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %u = stablehlo.{by} {left}, {right} : tensor<f32>
      stablehlo.return %u : tensor<f32>
    }}) {{dimensions = array<i64: 0>}} : ({V}, tensor<f32>) -> tensor<f32>
    %v = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> {V}""")


def ordered(kind: str = "LT", stable: str = "true") -> str:
    return last(f"""    %v = "stablehlo.sort"(%h) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %u = stablehlo.compare {kind}, %a, %b : (tensor<f32>, tensor<f32>) -> {B}
      stablehlo.return %u : {B}
    }}) {{dimension = 0 : i64, is_stable = {stable}}} : ({V}) -> {V}""")


def summed(
    channel: int | None = 1, groups: str = "[[0, 1], [2, 3]]", more: str = "", by: str = "add", of: str = "%h"
) -> str:
    message = "" if channel is None else f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>, "
    return last(f"""    %v = "stablehlo.all_reduce"({of}) <{{{message}replica_groups = dense<{groups}> : tensor<2x2xi64>{more}}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %u = stablehlo.{by} %a, %b : tensor<f32>
      stablehlo.return %u : tensor<f32>
    }}) : ({V}) -> {V}""")


def permuted(pairs: str) -> str:
    message = f"channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{pairs}>"
    return last(f'    %v = "stablehlo.collective_permute"(%h) <{{{message} : tensor<2x2xi64>}}> : ({V}) -> {V}')


def on_devices(inside: str, into: str = '@mesh, [{"a"}]', out: str = '@mesh, [{"a"}]', axes: str = '"a", "b"') -> str:
    """Return a body with a manual computation, in which `inside` makes %q of the device's part %p."""
    part = "tensor<2xf32>"
    return last(f"""    %v = sdy.manual_computation(%h) in_shardings=[<{into}>] out_shardings=[<{out}>] manual_axes={{{axes}}} (%p: {part}) {{
{inside}
      sdy.return %q : {part}
    }} : ({V}) -> {V}""")


def part(name: str, operand: str = "%p") -> str:
    return f"      %q = stablehlo.{name} {operand} : tensor<2xf32>"


def constrained(layout: str) -> str:
    return last(f"    %l = sdy.sharding_constraint %h <{layout}> : {V}\n    %v = {unary('sine')}")


def constrained_part(layout: str) -> str:
    held = f"      %l = sdy.sharding_constraint %p <{layout}> : tensor<2xf32>\n"
    return on_devices(held + part("sine"), axes='"a"')


WHICH = """      %d = "stablehlo.partition_id"() : () -> tensor<ui32>
      %e = stablehlo.convert %d : (tensor<ui32>) -> tensor<f32>
      %q = stablehlo.broadcast_in_dim %e, dims = [] : (tensor<f32>) -> tensor<2xf32>"""


def counted(end: str = "3", step: str = "1", start: str = "0", wrong: bool = False) -> str:
    """Return a body with an scf loop; with `wrong`, it yields its two carries swapped."""
    yielded = "%b, %a" if wrong else "%s, %a"
    bounds = "".join(f"    %{n} = arith.constant {v} : index\n" for n, v in (("lo", start), ("hi", end), ("by", step)))
    return last(f"""{bounds}    %v, %u = scf.for %j = %lo to %hi step %by iter_args(%a = %h, %b = %x) -> ({V}, {V}) {{
      %s = stablehlo.sine %b : {V}
      scf.yield {yielded} : {V}, {V}
    }}""")


def within(trips: str = "2", scale: str = "2", of: str = "%h") -> str:
    """Return a body with a nested counted loop."""
    return last(f"""    %zr = stablehlo.constant dense<0> : {N}
    %m, %v = stablehlo.while(%r = %zr, %g = {of}) : {N}, {V}
    cond {{
      %stop = stablehlo.constant dense<{trips}> : {N}
      %go = stablehlo.compare LT, %r, %stop, SIGNED : ({N}, {N}) -> {B}
      stablehlo.return %go : {B}
    }} do {{
      %k2 = stablehlo.constant dense<{scale}> : {N}
      %base = stablehlo.multiply %i, %k2 : {N}
      %at = stablehlo.add %base, %r : {N}
      %f = stablehlo.convert %at : ({N}) -> tensor<f32>
      %w = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> {V}
      %g1 = stablehlo.multiply %g, %w : {V}
      %o = stablehlo.constant dense<1> : {N}
      %r1 = stablehlo.add %r, %o : {N}
      stablehlo.return %r1, %g1 : {N}, {V}
    }}""")


def going_on(actual: str = "LT", kind: str = "FLOAT", limit: str = "2.0") -> str:
    """Return a body with a nested loop whose condition compares a float with a limit."""
    return last(f"""    %v, %m = stablehlo.while(%g = %h, %l = %x) : {V}, {V}
    cond {{
      %lim = stablehlo.constant dense<{limit}> : tensor<f32>
      %s0 = stablehlo.slice %g [0:1] : ({V}) -> tensor<1xf32>
      %s1 = stablehlo.reshape %s0 : (tensor<1xf32>) -> tensor<f32>
      %go = stablehlo.compare {actual}, %s1, %lim, {kind} : (tensor<f32>, tensor<f32>) -> {B}
      stablehlo.return %go : {B}
    }} do {{
      %big = stablehlo.constant dense<1.0> : {V}
      %g1 = stablehlo.add %g, %big : {V}
      %l1 = stablehlo.sine %l : {V}
      stablehlo.return %g1, %l1 : {V}, {V}
    }}""")


def barrier(swapped: bool) -> str:
    read = ("%b", "%a") if swapped else ("%a", "%b")
    return last(
        f"    %s = {unary('sine')}\n    %a, %b = stablehlo.optimization_barrier %s, %h : {V}, {V}\n"
        + binary("subtract", *read)
    )


def called(name: str, attributes: str = "") -> str:
    return last(f"    %v = func.call @{name}(%h) {attributes}: ({V}) -> {V}")


def drawn(algorithm: str = "THREE_FRY", state: str = "%state") -> str:
    return last(f"""    %s, %d = "stablehlo.rng_bit_generator"({state}) <{{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %v = stablehlo.convert %d : (tensor<4xui32>) -> {V}""")


def outside(target: str = "f", config: str = "1", effect: str = "true", version: str = "2", more: str = "") -> str:
    message = f'call_target_name = "{target}", backend_config = "{config}", has_side_effect = {effect}, api_version = {version} : i32{more}'
    return last(f'    %v = "stablehlo.custom_call"(%h) {{{message}}} : ({V}) -> {V}')
