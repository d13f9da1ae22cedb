"""Read a step: a module of xDSL or of MLIR's Python bindings, its text, or a step that JAX lowered."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Protocol, runtime_checkable

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from ...dialects.cloning import clone_of
from ...dialects.mark_calls import is_named_as_mark
from ...mlir_io.parser import parse_module
from ...support.remarks import Remark
from ...transforms.take_marks import take_marks
from .verified import verify_module

_SUFFIXES = (".mlir", ".mlirbc", ".txt")
"""The suffixes of files that contain a module."""


@runtime_checkable
class HasText(Protocol):
    """A lowered step that returns its module as text, such as `jax.stages.Lowered`, or the result of
    `equinox.filter_jit(f).lower(...)`. If `as_text` takes `debug_info=True`, the text has locations."""

    def as_text(self) -> str: ...


@runtime_checkable
class MlirModule(Protocol):
    """A module of MLIR's Python bindings, such as `jaxlib.mlir.ir.Module`. The method `get_asm` of its operation prints
    the module with locations.
    """

    @property
    def operation(self) -> Any: ...


StepInput = ModuleOp | str | HasText | MlirModule
"""The forms in which a step is accepted."""


def as_module(step: StepInput, name: str = "<input>") -> ModuleOp:
    """Return the step as a module; text is parsed.

    Calls that mark values become attributes. A module with such calls is copied first.

    `name`: the name of the text in error messages.
    """
    return with_marks_as_attributes(read_module(step, name))[0]


def verified_step(step: StepInput) -> ModuleOp:
    """Return the step as a verified module. Raises `Refusal` at the first invalid operation."""
    module = as_module(step)
    verify_module(module)
    return module


def read_module(step: StepInput, name: str) -> ModuleOp:
    """Return the step as a module whose marks may still be custom calls. `name`: the name of the text in error
    messages.

    Raises:
        TypeError: For a step of an unsupported type.
        ParseError: For text that is not MLIR.
    """
    if isinstance(step, ModuleOp):
        return step
    if isinstance(step, str):
        return _parse(step, name)
    if isinstance(step, HasText):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = _text_of(step)
        if text.startswith("HloModule"):
            raise TypeError(
                "expected a lowered step, not a compiled one: pass the result of jax.jit(f).lower(*arguments) itself"
            )
        return parse_module(text, name)
    if hasattr(getattr(step, "operation", None), "get_asm"):
        return parse_module(step.operation.get_asm(enable_debug_info=True), name)
    if callable(step):
        name = getattr(step, "__name__", "step")
        jitted = name if hasattr(step, "lower") else f"jax.jit({name})"
        raise TypeError(
            f"expected a lowered step, not a function: pass {jitted}.lower(*arguments), or call "
            f"recompute.jax.explain({name}, *arguments, budget=...) to check whether the step fits"
        )
    raise TypeError(
        "expected a module of xDSL or of MLIR's Python bindings, its text, or the result of jax.jit(f).lower(...), "
        f"not {type(step).__name__}"
    )


def with_marks_as_attributes(module: ModuleOp) -> tuple[ModuleOp, tuple[Remark, ...]]:
    """Convert the calls that mark values to attributes. Return the module, and remarks on marks without effect.

    A module that contains such calls is copied first.
    """
    if not any(map(is_named_as_mark, module.walk())):
        return module, ()
    copy = clone_of(module)
    return copy, take_marks(copy).remarks


def _text_of(step: HasText) -> str:
    """Return the text of a lowered step, with locations if the step can print them. A lowered step of Equinox cannot
    print locations. Its attribute `lowered` is JAX's lowered step, which can print them.
    """
    candidates: list[Any] = [step, getattr(step, "lowered", None)]
    for lowered in candidates:
        if isinstance(lowered, HasText) and "debug_info" in signature(lowered.as_text).parameters:
            as_text: Callable[..., str] = lowered.as_text
            return as_text(debug_info=True)
    return step.as_text()


def _parse(text: str, name: str) -> ModuleOp:
    """Parse the text of a module. If the text is the name of a file, the error explains how to read the file."""
    try:
        return parse_module(text, name)
    except ParseError as error:
        if "\n" in text or not text.endswith(_SUFFIXES):
            raise
        remedy = f"expected the text of a module, not the name of a file: write Path({text!r}).read_text()"
        raise ParseError(error.span, remedy) from error
