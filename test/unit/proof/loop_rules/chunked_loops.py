"""The program of `test_prove_loops.py` with a checkpoint every k iterations, as text."""

from __future__ import annotations

import re

ITERATIONS = 6
VECTOR, NUMBER = "tensor<4xf32>", "tensor<i32>"


def chunked(k: int) -> str:
    """Return the program with both loops in chunks of k iterations.

    The remaining iterations come last in the forward loop, and first in the backward loop.
    """
    chunks, rest = divmod(ITERATIONS, k)
    forward, backward = _forward(k, chunks), _backward(k, chunks, rest)
    if rest:
        forward += _run("y", "last", rest, "%whole", _plus("i", f"{chunks * k}", "l"), False)
        again = _run("ry", "kept", rest, "%whole", _plus("i", f"{chunks * k}", "l"), True)
        first = _gradient("g0", "%ct", rest, "%kept")
        backward = again + first + backward
    else:
        forward = forward.replace("%whole", "%y")
        backward = backward.replace("%g0", "%ct")
    return f"""
func.func public @main(%x: {VECTOR}, %ct: {VECTOR}) -> ({VECTOR}, {VECTOR}) {{
  %zero = stablehlo.constant dense<0> : {NUMBER}
  %f = stablehlo.constant dense<0.0> : tensor<f32>
{forward}{backward}
  func.return %y, %g : {VECTOR}, {VECTOR}
}}
"""


def _own(text: str, *kept: str) -> str:
    """Return the text with a suffix on every name that it defines except `kept`; the suffix is the first of those
    names."""
    results = {name for group in re.findall(r"^ *((?:%\w+, )*%\w+) =", text, re.M) for name in group.split(", ")}
    defined = results | set(re.findall(r"(%\w+) = %", text))
    for name in sorted(defined - set(kept), key=len, reverse=True):
        text = re.sub(rf"{name}\b", f"{name}_{kept[0][1:]}", text)
    return text


def _cond(counter: str, end: int) -> str:
    return f"""  cond {{
    %end = stablehlo.constant dense<{end}> : {NUMBER}
    %c = stablehlo.compare LT, {counter}, %end, SIGNED : ({NUMBER}, {NUMBER}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : {NUMBER}
    %one = stablehlo.constant dense<1> : {NUMBER}"""


def _plus(name: str, what: str, counter: str) -> str:
    return f"""    %{name}_by = stablehlo.constant dense<{what}> : {NUMBER}
    %{name} = stablehlo.add %{name}_by, %{counter} : {NUMBER}"""


def _next(counter: str) -> str:
    return f"    %{counter}1 = stablehlo.add %{counter}, %one : {NUMBER}"


def _write(stack: str, extent: int, value: str, at: str) -> str:
    whole, slice_ = f"tensor<{extent}x4xf32>", "tensor<1x4xf32>"
    types = f"({whole}, {slice_}, {NUMBER}, {NUMBER}) -> {whole}"
    return f"""    %{stack}_slice = stablehlo.broadcast_in_dim {value}, dims = [1] : ({VECTOR}) -> {slice_}
    %{stack}1 = stablehlo.dynamic_update_slice %{stack}, %{stack}_slice, {at}, %o : {types}"""


def _read(name: str, stack: str, extent: int, at: str) -> str:
    types = f"(tensor<{extent}x4xf32>, {NUMBER}, {NUMBER}) -> tensor<1x4xf32>"
    return f"""    %{name}_slice = stablehlo.dynamic_slice {stack}, {at}, %o, sizes = [1, 4] : {types}
    %{name} = stablehlo.reshape %{name}_slice : (tensor<1x4xf32>) -> {VECTOR}"""


def _empty(name: str, extent: int) -> str:
    return f"  %{name} = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<{extent}x4xf32>"


def _cosine(carry: str) -> str:
    return f"""    %float = stablehlo.convert %i : ({NUMBER}) -> tensor<f32>
    %wide = stablehlo.broadcast_in_dim %float, dims = [] : (tensor<f32>) -> {VECTOR}
    %p = stablehlo.multiply {carry}, %wide : {VECTOR}
    %t = stablehlo.cosine %p : {VECTOR}"""


def _run(result: str, stack: str, trips: int, start: str, index: str, stores: bool) -> str:
    """Return `trips` iterations of the forward loop from `start`; the text `index` computes its counter %i from %l."""
    types = f"{NUMBER}, {VECTOR}" + (f", tensor<{trips}x4xf32>" if stores else "")
    begins = f", %s = %{stack}0" if stores else ""
    text = f"""{_empty(stack + "0", trips)}
  %{result}_n, %{result}{f", %{stack}" if stores else ""} = stablehlo.while(%l = %zero, %h = {start}{begins}) : {types}
{_cond("%l", trips)}
{index}
{_write("s", trips, "%h", "%l") if stores else ""}
{_cosine("%h")}
    %next = stablehlo.sine %t : {VECTOR}
{_next("l")}
    stablehlo.return %l1, %next{", %s1" if stores else ""} : {types}
  }}
"""
    return _own(text, f"%{result}", f"%{stack}")


def _scaled(number: str, k: int) -> str:
    return f"""    %k = stablehlo.constant dense<{k}> : {NUMBER}
    %base = stablehlo.multiply {number}, %k : {NUMBER}
    %i = stablehlo.add %base, %l : {NUMBER}"""


def _forward(k: int, chunks: int) -> str:
    types = f"{NUMBER}, {VECTOR}, tensor<{chunks}x4xf32>"
    text = f"""{_empty("empty", chunks)}
  %n, %whole, %kept_chunks = stablehlo.while(%q = %zero, %b = %x, %a = %empty) : {types}
{_cond("%q", chunks)}
{_write("a", chunks, "%b", "%q")}
{_run("e", "unused", k, "%b", _scaled("%q", k), False)}
{_next("q")}
    stablehlo.return %q1, %e, %a1 : {types}
  }}
"""
    return _own(text, "%whole", "%kept_chunks")


def _gradient(result: str, start: str, trips: int, stack: str, actual: str = "") -> str:
    """Return `trips` iterations of the backward loop, which read the stack from its end; `done` counts the earlier
    ones."""
    types = f"{NUMBER}, {VECTOR}"
    text = f"""  %{result}_n, %{result} = stablehlo.while(%j = %zero, %d = {start}) : {types}
{_cond("%j", trips)}
    %end1 = stablehlo.constant dense<{trips - 1}> : {NUMBER}
    %at = stablehlo.subtract %end1, %j : {NUMBER}
{_read("h", stack, trips, "%at")}
    %iterations = stablehlo.constant dense<{ITERATIONS}> : {NUMBER}
{f"    %done = stablehlo.add {actual}, %j : {NUMBER}" if actual else ""}
    %before = stablehlo.subtract %iterations, {"%done" if actual else "%j"} : {NUMBER}
    %offset = stablehlo.constant dense<1> : {NUMBER}
    %i = stablehlo.subtract %before, %offset : {NUMBER}
{_cosine("%h")}
    %r1 = stablehlo.add %d, %t : {VECTOR}
    %r = stablehlo.sine %r1 : {VECTOR}
{_next("j")}
    stablehlo.return %j1, %r : {types}
  }}
"""
    return _own(text, f"%{result}")


def _backward(k: int, chunks: int, rest: int) -> str:
    types = f"{NUMBER}, {VECTOR}"
    return f"""  %m, %g = stablehlo.while(%p = %zero, %u = %g0) : {types}
{_cond("%p", chunks)}
    %top = stablehlo.constant dense<{chunks - 1}> : {NUMBER}
    %q = stablehlo.subtract %top, %p : {NUMBER}
    %size = stablehlo.constant dense<{k}> : {NUMBER}
    %rest = stablehlo.constant dense<{rest}> : {NUMBER}
    %past = stablehlo.multiply %p, %size : {NUMBER}
    %first = stablehlo.add %past, %rest : {NUMBER}
{_read("begin", "%kept_chunks", chunks, "%q")}
{_run("dead", "again", k, "%begin", _scaled("%q", k), True)}
{_gradient("eg", "%u", k, "%again", "%first")}
{_next("p")}
    stablehlo.return %p1, %eg : {types}
  }}
"""
