"""Small programs for the tests of the equivalence check, in a shorthand that becomes generic MLIR.

    %a = tanh %x                            one StableHLO operation; every value here is a tensor<4xf32>
    %b = iota {iota_dimension = 0 : i64}    with attributes
    %c = constant 1.0                       a constant of four equal elements
    %d, %e = optimization_barrier %a, %b    several results
    %f = call @name %a                      a call
    %g = while %a (%i) {                    a loop; its condition reads the first argument
      %j = tanh %i
    } yield %j
    return %b

Other lines are taken as they are. The programs are read without a StableHLO dialect, so that nothing but names,
operands, attributes and regions is there for the check to go by.
"""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from recompute.dialects.recompute import RECOMPUTE
from recompute.proof.prove import Proof, prove

T = "tensor<4xf32>"
OPERATION = re.compile(r"(?P<results>%.*?) = (?P<name>[a-z_]+)(?P<operands>(?: %\w+,?)*)(?P<attributes> \{.*\})?")
CONSTANT = re.compile(r"(?P<result>%\w+) = constant (?P<value>[^ ]+)")
CALL = re.compile(r"(?P<results>%.*?) = call (?P<name>@\w+)(?P<operands>(?: %\w+,?)*)(?P<attributes> \{.*\})?")
LOOP = re.compile(r"(?P<results>%.*?) = while (?P<operands>.*) \((?P<arguments>.*)\) \{")
RETURN = re.compile(r"(?P<kind>return|\} yield) (?P<operands>%.*)")


def load(text: str) -> ModuleOp:
    """Parse a program in shorthand or generic MLIR, without verification."""
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, RECOMPUTE):
        context.load_dialect(dialect)
    # Not verified: xDSL takes an unregistered operation with regions for a symbol table, and finds no callee in it.
    return Parser(context, "\n".join(map(expand, text.splitlines()))).parse_module()


def main(body: str, others: str = "", attributes: str = "") -> str:
    """Return a module with a function `@main(%x, %y)` of this body, and `others` at its top level."""
    return f"func.func @main(%x: {T}, %y: {T}) -> {T} {attributes}{{\n{body}\n}}\n{others}"


def program_of_one(operation: str) -> str:
    """Return a module whose `@main` consists of a single operation."""
    return main(f"%a = {operation}\nreturn %a")


def private(name: str, body: str, attributes: str = "") -> str:
    """Return a private function of one argument %p and one result."""
    return f"func.func private @{name}(%p: {T}) -> {T} {attributes}{{\n{body}\n}}"


SQUARE = private("square", "%q = multiply %p, %p\nreturn %q")

GROUP = """
%a = "recompute.segment"() ({
%b = tanh %x
"recompute.yield"(%b) : (tensor<4xf32>) -> ()
}) : () -> tensor<4xf32>
return %a
"""


def compare(before: str, after: str) -> Proof:
    return prove(load(before), load(after))


def expand(line: str) -> str:
    line = line.strip()
    if match := CONSTANT.fullmatch(line):
        return f'{match["result"]} = "stablehlo.constant"() <{{value = dense<{match["value"]}> : {T}}}> : () -> {T}'
    if match := CALL.fullmatch(line):
        return f'{match["results"]} = "func.call"({_list(match)}) <{{callee = {match["name"]}}}>' + _rest(match)
    if match := LOOP.fullmatch(line):
        return _loop(match)
    if match := RETURN.fullmatch(line):
        types = _types(match["operands"])
        if match["kind"] == "return":
            return f"func.return {match['operands']} : {types}"
        return f'"stablehlo.return"({match["operands"]}) : ({types}) -> () }}) : ({types}) -> ({types})'
    if match := OPERATION.fullmatch(line):
        return f'{match["results"]} = "stablehlo.{match["name"]}"({_list(match)})' + _rest(match)
    return line


def _list(match: re.Match[str]) -> str:
    return match["operands"].strip()


def _rest(match: re.Match[str]) -> str:
    attributes = match["attributes"] or ""
    return f"{attributes} : ({_types(match['operands'])}) -> ({_types(match['results'])})"


def _loop(match: re.Match[str]) -> str:
    names = match["arguments"].split(", ")
    arguments = ", ".join(f"{name}: {T}" for name in names)
    conditions = arguments.replace("%", "%of_")
    condition = f'%go = "stablehlo.is_finite"(%of_{names[0][1:]}) : ({T}) -> tensor<4xi1>'
    return f"""{match["results"]} = "stablehlo.while"({match["operands"]}) ({{
^bb0({conditions}):
{condition}
"stablehlo.return"(%go) : (tensor<4xi1>) -> ()
}}, {{
^bb0({arguments}):"""


def _types(values: str) -> str:
    return ", ".join(T for _ in re.findall(r"%", values))
