"""Calls inside an unregistered operation find functions outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from recompute.mlir_io.workarounds.symbols import looks_around_unknown_operations, repair_symbols
from recompute.tools.recompute_opt import main

repair_symbols()  # as stock tools do when they load the plugin

T = "tensor<4xf32>"
SQUARE = f"func.func private @square(%p: {T}) -> {T} {{\n  return %p : {T}\n}}\n"


def calling(name: str, inside: str = "") -> str:
    call = f'%a = "func.call"(%v) <{{callee = @{name}}}> : ({T}) -> {T}'
    return f"""{SQUARE}func.func @main(%x: {T}) -> {T} {{
  %m = "any.thing"(%x) ({{
  ^bb0(%v: {T}):
    {inside}
    {call}
    "any.end"(%a) : ({T}) -> ()
  }}) : ({T}) -> {T}
  return %m : {T}
}}
"""


def verify(text: str) -> None:
    """Verify the text with xDSL alone, as stock tools with our plugin do."""
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func):
        context.load_dialect(dialect)
    Parser(context, text).parse_module().verify()


def test_symbol_lookup_is_repaired() -> None:
    assert looks_around_unknown_operations()


def test_symbol_around_unknown_operation_is_found() -> None:
    verify(calling("square"))


def test_definition_in_unknown_operation_takes_precedence() -> None:
    inner = "func.func private @square(f32) -> f32"
    with pytest.raises(VerifyException, match="operand type mismatch"):
        verify(calling("square", inner))


def test_undefined_symbol_is_an_error() -> None:
    with pytest.raises(VerifyException, match="could not be found in symbol table"):
        verify(calling("cube"))


def test_driver_reads_call_inside_unknown_operation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.mlir"
    file.write_text(calling("square"))
    assert main([str(file)]) == 0
    assert "@square" in capsys.readouterr().out
