"""A plan from a file, for a module that is about to be changed."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ...dialects.diagnostics import Refusal
from ...planning.plan_file import BadPlan, StepPlan, from_json


def read_plan(module: ModuleOp, path: str) -> tuple[StepPlan, ...]:
    """Raises `Refusal` at the module for a file that cannot be read, or that holds no plan."""
    try:
        return from_json(Path(path).read_text())
    except OSError as error:
        raise Refusal(module, f"the plan {path} cannot be read: {error.strerror}") from error
    except (BadPlan, UnicodeDecodeError) as error:
        raise Refusal(module, f"{path}: {error}") from error
