"""Modules that the bridge refuses are passed as text, with equal results."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

import recompute
from recompute.dialects import making
from recompute.frontends.jax import bridge
from recompute.frontends.jax.bridge import NotBridged, crossing, read, write
from recompute.frontends.jax.internals import private
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.test.unit.frontends.jax.bridge.crossings import crosses, theirs
from recompute.test.unit.frontends.jax.steps import batch, far_apart, jax, mlp, weights

RESOURCE = """
func.func @f() { %0 = stablehlo.constant dense_resource<blob> : tensor<2xf32> return }
{-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}
"""


def refuse(*args: Any) -> Any:
    raise NotBridged("as the test wants it")


def never(*args: Any) -> Any:
    raise AssertionError("there was no need of text")


@pytest.mark.parametrize("way", ["read", "write", "both"])
def test_text_fallback_gives_the_same_result(way: str, monkeypatch: pytest.MonkeyPatch):
    step = mlp().step
    short = recompute.jax.jit(step).lower(weights(), batch())
    for name in ("read", "write") if way == "both" else (way,):
        monkeypatch.setattr(bridge, name, refuse)
    long = recompute.jax.jit(step).lower(weights(), batch())
    assert short.rewritten is not None and long.rewritten is not None
    assert short.rewritten.copies > 0
    assert short.rewritten.plan_text == long.rewritten.plan_text
    assert list(map(str, short.remarks)) == list(map(str, long.remarks))
    assert short.as_text() == long.as_text()
    monkeypatch.undo()
    run = recompute.jax.jit(step)(weights(), batch())
    assert far_apart(run, jax.jit(step)(weights(), batch())) == []


def test_bridge_uses_no_text(monkeypatch: pytest.MonkeyPatch):
    for name in ("parse_module", "print_module"):
        monkeypatch.setattr(crossing, name, never)
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert lowered.rewritten is not None and lowered.rewritten.copies > 0
    assert recompute.jax.jit(mlp().step).explain(weights(), batch())


def test_rewritten_module_differs_from_the_plain_one():
    """JAX receives the rewritten module, without an executable of the plain one."""
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert lowered.rewritten is not None
    module: Any = lowered.optimized.compiler_ir()
    plain: Any = lowered.plain.compiler_ir()
    assert module.operation != plain.operation
    assert read(module).is_structurally_equivalent(lowered.rewritten.module)


def test_resource_falls_back_to_text(monkeypatch: pytest.MonkeyPatch):
    """The bridge refuses a resource, whose content follows the module; the text contains it."""
    module = theirs(RESOURCE)
    with pytest.raises(NotBridged, match="dialect resource"):
        read(module)
    with pytest.raises(NotBridged, match="dialect resource"):
        write(parse_module(RESOURCE), private.mlir_context())
    lowered = jax.jit(mlp().step).lower(weights(), batch())
    kind: Any = jax.stages.Lowered

    def compiler_ir(self: Any) -> Any:
        return module

    def as_text(self: Any, **kwargs: Any) -> str:
        return RESOURCE

    monkeypatch.setattr(kind, "compiler_ir", compiler_ir)
    monkeypatch.setattr(kind, "as_text", as_text)
    assert '"0x040000000000803F00000040"' in print_module(crossing.module_of(lowered, "step"))
    monkeypatch.undo()
    changed = crossing.with_module(lowered, parse_module(RESOURCE))
    assert "dense_resource<" in str(changed.compiler_ir())


def test_unreadable_attribute_is_refused():
    """The bridge refuses a typed string, which xDSL cannot represent."""
    with pytest.raises(NotBridged, match="the parser of xDSL stops before the end of the text"):
        read(theirs('func.func private @f() attributes {a = "x" : i32}'))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('func.func @f() { "nobodys.own"() : () -> () return }', "nobodys|unregistered"),
        ("func.func @f(%0: i32) -> i32 { %1 = func.call @g(%0) : (i32) -> i32 return %1 : i32 }", "does not reference"),
        ('"func.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({ }) : () -> ()', ""),
    ],
    ids=["unknown dialect", "verifier", "no body"],
)
def test_module_invalid_in_mlir_is_refused(text: str, words: str):
    """The bridge refuses an invalid module before compilation, and MLIR refuses its text with a message."""
    module = parse_module(text)
    if words:
        with pytest.raises(NotBridged, match=words):
            write(module, private.mlir_context())
        lowered = jax.jit(mlp().step).lower(weights(), batch())
        with pytest.raises(Exception, match=words):
            crossing.with_module(lowered, module)


def test_value_before_its_definition_is_refused():
    module = parse_module(
        """"builtin.module"() ({ "func.func"() <{sym_name = "f", function_type = () -> ()}> ({
            "cf.br"()[^b] : () -> ()
        ^a:
            "func.return"() : () -> ()
        ^b:
            %0 = "arith.constant"() <{value = 1 : i32}> : () -> i32
            "cf.br"()[^c] : () -> ()
        ^d:
            %2 = "arith.addi"(%1, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
            "func.return"() : () -> ()
        ^c:
            %1 = "arith.addi"(%0, %0) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
            "cf.br"()[^d] : () -> ()
        }) : () -> () }) : () -> ()"""
    )
    with pytest.raises(NotBridged, match="before its definition"):
        write(module, private.mlir_context())
    with pytest.raises(NotBridged, match="before its definition"):
        read(private.parse_mlir(print_module(module)))


def test_any_failure_raises_one_error_type(monkeypatch: pytest.MonkeyPatch):
    """Any exception of the bindings or of the bridge becomes one type of error."""
    nothing: Any = object()
    with pytest.raises(NotBridged, match="AttributeError"):
        read(nothing)
    with pytest.raises(NotBridged, match=r"TypeError|AttributeError"):
        write(ModuleOp([]), nothing)


def test_missing_bindings_fall_back_to_text(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(bridge, "read")
    monkeypatch.delattr(bridge, "write")
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert lowered.rewritten is not None and lowered.rewritten.copies > 0


def test_changed_xdsl_fields_fall_back_to_constructors(monkeypatch: pytest.MonkeyPatch):
    """Objects are built by xDSL's constructors if the fields of its classes have changed."""
    assert making.has_expected_fields()
    monkeypatch.setitem(making.EXPECTED_FIELDS, StringAttr, "text")
    assert not making.has_expected_fields()
    module = jax.jit(mlp().step).lower(weights(), batch()).compiler_ir()
    quick = print_module(read(module), debuginfo=True)
    monkeypatch.setattr(making, "HAS_EXPECTED_FIELDS", False)
    monkeypatch.setattr("recompute.frontends.jax.bridge.reading.name_location", making.checked_name)
    assert print_module(read(module), debuginfo=True) == quick


@pytest.mark.parametrize("was", [True, False])
def test_garbage_collector_state_is_restored(was: bool):
    enabled = gc.isenabled()
    try:
        (gc.enable if was else gc.disable)()
        crosses(theirs("module {}"))
        nothing: Any = object()
        with pytest.raises(NotBridged):
            read(nothing)
        assert gc.isenabled() == was
    finally:
        (gc.enable if enabled else gc.disable)()
