"""JAX's own MLIR as a reference. It runs in its own process, since it may crash on invalid input.

As a script, this module answers requests, one JSON value per line. For `[text, generic, debuginfo, mark]` it parses,
verifies and prints the text. With `mark`, it first adds an attribute to every operation.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

ALLOW = "--allow-unregistered-dialect"


class Judge:
    """The parser and the printer of jaxlib."""

    def __init__(self, allow_unregistered: bool = False) -> None:
        command = [sys.executable, __file__, *([ALLOW] if allow_unregistered else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def print(self, text: str, *, generic: bool = False, debuginfo: bool = True, mark: bool = False) -> str:
        """Return the program as JAX prints it. Raises `AssertionError` with MLIR's message if it is invalid."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([text, generic, debuginfo, mark]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "jaxlib crashed"
        printed, error = json.loads(answer)
        assert error is None, f"jaxlib refuses the text: {error}"
        return printed

    def close(self) -> None:
        self._process.communicate()


def serve() -> None:
    """Answer the requests on standard input."""
    # jaxlib's bindings have no types.
    from jax._src.interpreters import mlir  # pyright: ignore[reportMissingTypeStubs]
    from jaxlib.mlir import ir  # pyright: ignore

    bindings: Any = ir
    context: Any = mlir.make_ir_context()
    context.allow_unregistered_dialects = ALLOW in sys.argv

    def mark(op: Any) -> Any:
        name = op.name
        if not name.startswith(("builtin", "func.func")):
            op.attributes["recompute.segment"] = bindings.StringAttr.get(f"m/{name}")
        return bindings.WalkResult.ADVANCE

    for line in sys.stdin:
        text, generic, debuginfo, marked = json.loads(line)
        try:
            with context:
                operation = bindings.Module.parse(text).operation
                if marked:
                    operation.walk(mark)
                answer = operation.get_asm(print_generic_op_form=generic, enable_debug_info=debuginfo), None
        except bindings.MLIRError as error:
            answer = None, str(error)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
