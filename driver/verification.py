"""Everything that a module must satisfy, with errors at the operation."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ..mlir_io.repeated_operations import verify_nested
from ..rules.names import name_of
from ..support.diagnostics import Refusal
from ..transforms.verify import verify_input


def verify_module(module: ModuleOp) -> None:
    """xDSL's verifier, dominance and the `recompute.` attributes. Raises `Refusal` at the first bad operation."""
    # Dominance first: xDSL's own verifier takes it for granted.
    verify_input(module)
    try:
        verify_nested(module)
    except Exception:
        # Some operations of xDSL raise other exceptions than they should; to the user all say that the module is wrong.
        _raise_at_operation(module)
        raise


def _raise_at_operation(module: ModuleOp) -> None:
    """Look for the operation: xDSL's error shows its text, not its place."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except Exception as error:
            cause = error.__cause__ or error
            raise Refusal(op, f"{name_of(op)}: {' '.join(str(cause).split())}") from error
