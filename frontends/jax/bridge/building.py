"""The builders of MLIR's bindings, untyped: their type stubs are incomplete."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

build: Any = ir
