"""The builders of MLIR's bindings, whose types are told to a type checker in part only."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

build: Any = ir
