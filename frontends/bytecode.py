"""Read MLIR bytecode and StableHLO's portable artifacts, and write MLIR bytecode. Both require jaxlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

BYTECODE_MAGIC = b"ML\xefR"
_PORTABLE = b"StableHLO_v"
"""The beginning of the producer's name in a portable artifact, after the magic number and a version."""
_PRODUCER = slice(len(BYTECODE_MAGIC), 64)
MISSING = "reading and writing MLIR bytecode needs jaxlib, which is not installed: pip install 'xdsl-recompute[jax]'"


class BytecodeError(ValueError):
    """Raised for bytecode that cannot be read or written. `str()` gives the reason."""


def is_bytecode(data: bytes) -> bool:
    return data.startswith(BYTECODE_MAGIC)


def text_of_bytecode(data: bytes) -> str:
    """Return the module as text with locations. Raises `BytecodeError`."""
    bindings, context = _bindings()
    with context:
        try:
            if _PORTABLE in data[_PRODUCER]:
                from jaxlib.mlir.dialects import stablehlo  # pyright: ignore

                dialect: Any = stablehlo
                module = dialect.deserialize_portable_artifact(context, data)
            else:
                module = bindings.Module.parse(data)
        except (bindings.MLIRError, ValueError) as error:
            raise BytecodeError(_in_one_line(error)) from error
        return module.operation.get_asm(enable_debug_info=True)


def bytecode_of_text(text: str) -> bytes:
    """Convert the text of a module to bytecode. Raises `BytecodeError`, also if MLIR cannot parse the text."""
    bindings, context = _bindings()
    with context:
        try:
            module = bindings.Module.parse(text)
        except (bindings.MLIRError, ValueError) as error:
            raise BytecodeError(_in_one_line(error)) from error
        stream = BytesIO()
        module.operation.write_bytecode(stream)
        return stream.getvalue()


def _bindings() -> tuple[Any, Any]:
    """Return jaxlib's MLIR bindings, and a context with JAX's dialects. Raises `BytecodeError` if jaxlib is missing."""
    try:
        # jaxlib's bindings have no types.
        from jax._src.interpreters import mlir  # pyright: ignore[reportMissingTypeStubs]
        from jaxlib.mlir import ir  # pyright: ignore
    except ImportError as error:
        raise BytecodeError(MISSING) from error
    context: Any = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    return ir, context


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())
